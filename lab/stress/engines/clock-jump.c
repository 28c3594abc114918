/* Preloaded into an engine: its clock is ahead by the milliseconds in the file that CLOCK_JUMP names. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *jump;

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("CLOCK_JUMP");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *found = mmap(0, sizeof *jump, PROT_READ, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) jump = found;
  close(file);
}

static void ahead(struct timespec *time) {
  int64_t ms = jump ? *jump : 0;
  time->tv_sec += ms / 1000;
  time->tv_nsec += ms % 1000 * 1000000;
  if (time->tv_nsec >= 1000000000) time->tv_nsec -= 1000000000, time->tv_sec++;
  if (time->tv_nsec < 0) time->tv_nsec += 1000000000, time->tv_sec--;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int failed = syscall(SYS_clock_gettime, clock, time);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) ahead(time);
  return failed;
}

int gettimeofday(struct timeval *time, void *zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *stored) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (stored) *stored = now.tv_sec;
  return now.tv_sec;
}
