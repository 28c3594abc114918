import type { Moment, Point } from "./fields.js";
import type { PlaceCount, RouteCount } from "./model.js";

/** The number of routes that are stored; places are to a degree, so their number is small. */
const MOST_ROUTES = 10_000;

/** Counts places and the routes between them. */
export interface Places {
  add(first: Moment, last: Moment): void;
  places(most: number): PlaceCount[];
  routes(most: number): RouteCount[];
}

/** Places of which none was counted. */
export function createPlaces(): Places {
  const places = new Map<string, PlaceCount>();
  const routes = new Map<string, RouteCount>();
  const placeOf = (point: Point) => {
    // Adding zero turns the minus zero of rounding into zero.
    const latitude = Math.round(point.latitude) + 0;
    const longitude = Math.round(point.longitude) + 0;
    const key = `${latitude},${longitude}`;
    const place = places.get(key) ?? { latitude, longitude, first_seen: 0, last_seen: 0 };
    places.set(key, place);
    return { key, place };
  };
  return {
    add(first, last) {
      const from = first.point && placeOf(first.point);
      const to = last.point && placeOf(last.point);
      if (from) from.place.first_seen++;
      if (to) to.place.last_seen++;
      if (!from || !to || from.key === to.key) return;
      const key = `${from.key} ${to.key}`;
      const known = routes.get(key);
      if (known) known.count++;
      else if (routes.size < MOST_ROUTES) {
        routes.set(key, {
          from: [from.place.latitude, from.place.longitude],
          to: [to.place.latitude, to.place.longitude],
          count: 1,
        });
      }
    },
    places: (most) => [...places.values()].sort((a, b) => weight(b) - weight(a)).slice(0, most),
    routes: (most) => [...routes.values()].sort((a, b) => b.count - a.count).slice(0, most),
  };
}

function weight({ first_seen, last_seen }: PlaceCount): number {
  return first_seen + last_seen;
}
