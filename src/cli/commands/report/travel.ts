import type { Point } from "./fields.js";

const EARTH_RADIUS_KM = 6371;

/** The distance of two places over the ground, in kilometres: the great circle by the haversine formula. */
export function distanceKm(a: Point, b: Point): number {
  const [latitudeA, latitudeB] = [radians(a.latitude), radians(b.latitude)];
  const half = (x: number) => Math.sin(x / 2) ** 2;
  const chord =
    half(latitudeB - latitudeA) +
    Math.cos(latitudeA) * Math.cos(latitudeB) * half(radians(b.longitude) - radians(a.longitude));
  // Rounding can carry it past 1 for places that are opposite each other.
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(chord)));
}

function radians(degrees: number): number {
  return (degrees / 180) * Math.PI;
}
