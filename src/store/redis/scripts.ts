import { orUndefined } from "../../errors.js";
import type { RecordKey, RecordKind } from "../driver/driver.js";

/** A key as one text, for messages. */
export function encodeKey({ kind, partition, id }: RecordKey): string {
  return `${kind} ${encodeURIComponent(partition)} ${encodeURIComponent(id)}`;
}

/** The key that {@link encodeKey} encoded; undefined for another text, because anybody may publish. */
export function decodeKey(text: string): RecordKey | undefined {
  const [, kind, partition = "", id = ""] = /^([a-z]+) (\S+) (\S+)$/.exec(text) ?? [];
  return orUndefined(() =>
    kind
      ? { kind: kind as RecordKind, partition: decodeURIComponent(partition), id: decodeURIComponent(id) }
      : undefined,
  );
}

/**
 * The names of keys. A partition, an id and a tag are percent-encoded in them: ASCII without braces, colons and blanks. All
 * keys of a partition have the same hash tag, so that a cluster puts them into one slot.
 */
export type Names = ReturnType<typeof namesWith>;

export function namesWith(prefix: string) {
  const base = (partition: string) => `${prefix}:{${encodeURIComponent(partition)}}`;
  /** What the keys of the records of a kind begin with; their encoded ids follow. */
  const records = (kind: RecordKind, partition: string) => `${base(partition)}:r:${kind}:`;
  return {
    records,
    /** A record: a hash of its version, its value and the keys of its tags. */
    record: ({ kind, partition, id }: RecordKey) => `${records(kind, partition)}${encodeURIComponent(id)}`,
    /** The encoded ids of the records of a kind. */
    index: (kind: RecordKind, partition: string) => `${base(partition)}:i:${kind}`,
    /** The encoded ids of the records with each of these tags. */
    tags: (kind: RecordKind, partition: string, tags: Readonly<Record<string, string>> = {}) =>
      Object.entries(tags).map(
        ([name, value]) => `${base(partition)}:t:${kind}:${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
      ),
    /** The encoded ids of the records that are due at a time, by that. */
    due: (kind: RecordKind, partition: string) => `${base(partition)}:d:${kind}`,
    /** The newest claim under a key. */
    lease: ({ kind, partition, id }: RecordKey) => `${base(partition)}:l:${kind}:${encodeURIComponent(id)}`,
    /** The keys of all leases of a partition, by the time when each can be forgotten. */
    leases: (partition: string) => `${base(partition)}:l`,
    /** The newest version of a partition. */
    state: (partition: string) => `${base(partition)}:seq`,
    /** The encoded names of the partitions that have had a record of this kind. */
    partitions: (kind: RecordKind) => `${prefix}:p:${kind}`,
    /** A key that exists for the moment of a look at the engine. */
    probe: `${prefix}:probe`,
    channel: `${prefix}:ch`,
  };
}

// Each script runs without a break in the engine. It reads the engine's clock and names no key outside its hash slot.

// The source of versions and attempts: above all before it, also after a restart or a failover that lost the newest ones,
// because it is never behind the clock. 2^53 microseconds last until the year 2255.
const CLOCK = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function tick(key)
  local last = redis.call('HGET', key, 'n') or 0
  local next = string.format('%.0f', math.max(last + 1, time[1] * 1000000 + time[2]))
  redis.call('HSET', key, 'n', next)
  return next
end
`;

const UNTAG = `
local function untag(tags, id)
  for key in string.gmatch(tags or '', '[^\\n]+') do redis.call('ZREM', key, id) end
end
`;

// A user of the engine may lack the right to publish.
const PUBLISH = `
local function publish(channel, message)
  if channel ~= '' then redis.pcall('PUBLISH', channel, message) end
end
`;

/** A script, and whether a replica could run it: it must not, because a replica is behind. */
export const GET = "return redis.call('HMGET', KEYS[1], 'v', 'd')";

/**
 * KEYS: record, index, state. ARGV: id. Returns version and value, or nothing.
 *
 * It writes what is there once more, with each command that `PUT` uses: rights, memory, and keys of other programs refuse
 * this as they would refuse that. Without a record nothing is written.
 */
export const TOUCH = `
local stored = redis.call('HMGET', KEYS[1], 'v', 'd', 't')
if not stored[1] then return {} end
redis.call('TIME')
redis.call('HSET', KEYS[1], 'v', stored[1])
redis.call('HSET', KEYS[3], 'n', redis.call('HGET', KEYS[3], 'n') or stored[1])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
for key in string.gmatch(stored[3] or '', '[^\\n]+') do
  redis.call('ZREM', key, '')
  redis.call('ZADD', key, 0, ARGV[1])
end
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PERSIST', KEYS[1]) end
return {stored[1], stored[2]}
`;

/**
 * KEYS: record, state, prefix of records, due, index, tags… ARGV: id, expected version or '', value, milliseconds or
 * '', channel, message, due time, 'none', or '' to leave it as it is, '1' to count replicas. Returns the new version, if it
 * is stored, and the number of replicas.
 *
 * An expired record stays in the index and under its tags. Each put of a record that expires looks at four random ids
 * of each of these and removes the expired, so that they cannot pile up.
 */
export const PUT = `${CLOCK}${UNTAG}${PUBLISH}
local stored = redis.call('HMGET', KEYS[1], 'v', 't')
if (stored[1] or '') ~= ARGV[2] then return {} end
untag(stored[2], ARGV[1])
local version = tick(KEYS[2])
redis.call('PERSIST', KEYS[1])
redis.call('HSET', KEYS[1], 'v', version, 'd', ARGV[3], 't', table.concat(KEYS, '\\n', 6))
for i = 5, #KEYS do redis.call('ZADD', KEYS[i], 0, ARGV[1]) end
if ARGV[4] ~= '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  for i = 5, #KEYS do
    for _, id in ipairs(redis.call('ZRANDMEMBER', KEYS[i], 4)) do
      if redis.call('EXISTS', KEYS[3] .. id) == 0 then redis.call('ZREM', KEYS[i], id) end
    end
  end
end
if ARGV[7] == 'none' then
  redis.call('ZREM', KEYS[4], ARGV[1])
elseif ARGV[7] ~= '' then
  redis.call('ZADD', KEYS[4], ARGV[7], ARGV[1])
end
publish(ARGV[5], ARGV[6])
local info = ARGV[8] == '1' and redis.pcall('INFO', 'replication')
return {version, type(info) == 'string' and string.match(info, 'connected_slaves:(%d+)') or '0'}
`;

/** KEYS: record, index, due. ARGV: id, expected version or '', channel, message. */
export const DELETE = `${UNTAG}${PUBLISH}
local stored = redis.call('HMGET', KEYS[1], 'v', 't')
if not stored[1] or (ARGV[2] ~= '' and stored[1] ~= ARGV[2]) then return 0 end
untag(stored[2], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('DEL', KEYS[1])
publish(ARGV[3], ARGV[4])
return 1
`;

/**
 * KEYS: prefix of records, index, tags… ARGV: where to begin, limit.
 * Returns the last id, if there may be more, and id, version and value of each record.
 */
export const SCAN = `
local from = 2
for i = 3, #KEYS do
  if from == 2 or redis.call('ZCARD', KEYS[i]) < redis.call('ZCARD', KEYS[from]) then from = i end
end
local ids = redis.call('ZRANGEBYLEX', KEYS[from], ARGV[1], '+', 'LIMIT', 0, ARGV[2])
local found = {#ids == tonumber(ARGV[2]) and ids[#ids] or ''}
for _, id in ipairs(ids) do
  local record = redis.call('HMGET', KEYS[1] .. id, 'v', 'd', 't')
  local isFound = record[1]
  for i = 3, #KEYS do
    local tags = '\\n' .. (record[3] or '') .. '\\n'
    if not string.find(tags, '\\n' .. KEYS[i] .. '\\n', 1, true) then isFound = false end
  end
  if isFound then
    for _, part in ipairs({id, record[1], record[2]}) do found[#found + 1] = part end
  elseif not record[1] then
    redis.call('ZREM', KEYS[from], id)
  end
end
return found
`;

/**
 * KEYS: prefix of records, due. ARGV: due time, limit.
 * Returns how many are due, and id, version, value and due time of each record.
 */
export const DUE = `
local found = {redis.call('ZCOUNT', KEYS[2], '-inf', ARGV[1])}
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for i = 1, #due, 2 do
  local record = redis.call('HMGET', KEYS[1] .. due[i], 'v', 'd')
  if record[1] then
    for _, part in ipairs({due[i], record[1], record[2], due[i + 1]}) do found[#found + 1] = part end
  else
    redis.call('ZREM', KEYS[2], due[i])
  end
end
return found
`;

/** KEYS: index of partitions. ARGV: where to begin, limit. A script, because a client may send a read to a replica. */
export const PARTITIONS = "return redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2])";

/** KEYS: index of partitions, which is in another slot than their records. ARGV: partition. */
export const REGISTER = "return redis.call('ZADD', KEYS[1], 0, ARGV[1])";

/**
 * KEYS: lease, state, leases. ARGV: owner, milliseconds, note.
 * Returns '1' or '0', the attempt, the milliseconds left, and the trace: that of the claim before, or of the one that holds
 * the lease.
 *
 * A lease has no expiry of the engine's, which could evict it. Each claim forgets up to ten leases that ended 30 days ago.
 */
export const CLAIM = `${CLOCK}
local month = 30 * 86400000
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - month, 'LIMIT', 0, 10)) do
  local times = redis.call('HMGET', key, 'r', 'u')
  local ended = tonumber(times[1] or times[2] or 0)
  if ended > now - month then
    redis.call('ZADD', KEYS[3], ended, key)
  else
    redis.call('DEL', key)
    redis.call('ZREM', KEYS[3], key)
  end
end
local lease = redis.call('HMGET', KEYS[1], 'n', 'o', 'a', 'r', 't', 'u')
local trace = lease[1] and {lease[1], lease[2], lease[3], now, lease[4] or '', lease[5]} or {}
if lease[1] and not lease[4] and lease[6] - now > 0 then return {'0', lease[1], lease[6] - now, unpack(trace)} end
local attempt = tick(KEYS[2])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'n', attempt, 'o', ARGV[1], 'a', now, 'u', now + ARGV[2], 't', ARGV[3])
redis.call('ZADD', KEYS[3], now, KEYS[1])
return {'1', attempt, 0, unpack(trace)}
`;

const HELD = `
local lease = redis.call('HMGET', KEYS[1], 'o', 'r', 'u')
if lease[1] ~= ARGV[1] or lease[2] or lease[3] - now <= 0 then return 0 end
`;

/** KEYS: lease. ARGV: owner, milliseconds, note. */
export const EXTEND = `${CLOCK}${HELD}
redis.call('HSET', KEYS[1], 'u', now + ARGV[2], 't', ARGV[3])
return 1
`;

/** KEYS: lease, leases. ARGV: owner, '1' if there is a note, note. */
export const RELEASE = `${CLOCK}${HELD}
if ARGV[2] == '1' then
  redis.call('HSET', KEYS[1], 'r', now, 't', ARGV[3])
else
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], KEYS[1])
end
return 1
`;

/**
 * KEYS: a key that is used for nothing else. Returns the engine's time in milliseconds, what INFO says, or false where it is
 * refused, and each command of the scripts that is refused, with the reason.
 */
export const HEALTH = `${CLOCK}
local info = redis.pcall('INFO')
local found = {now, type(info) == 'string' and info}
local function try(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err then
    found[#found + 1] = command
    found[#found + 1] = reply.err
  end
end
local set = KEYS[1] .. ':z'
try('HSET', KEYS[1], 'n', 1)
try('HGET', KEYS[1], 'n')
try('HMGET', KEYS[1], 'n')
try('PTTL', KEYS[1])
try('PERSIST', KEYS[1])
try('PEXPIRE', KEYS[1], 1000)
try('EXISTS', KEYS[1])
try('ZADD', set, 0, '')
try('ZCARD', set)
try('ZCOUNT', set, 0, 0)
try('ZRANDMEMBER', set, 1)
try('ZRANGEBYLEX', set, '-', '+')
try('ZRANGEBYSCORE', set, 0, 0)
try('ZREM', set, '')
try('DEL', KEYS[1], set)
return found
`;
