import type { PlaceCount, Report, RouteCount, Tally } from "../model.js";
import { countryName, numberText } from "../numbers.js";
import { html, type Markup } from "./markup.js";
import { drawPicture, rounded } from "./svg.js";
import { countryShapes, equalEarth } from "./world.js";

const WIDTH = 1080;
const HEIGHT = 500;
const MARGIN = 4;
/** Shades of countries, each with the same number of countries. */
const SHADES = 5;
const MOST_PLACES = 150;
const MOST_ROUTES = 40;
/** How far a route bends, as a share of its length. */
const BEND = 0.22;
const RADIUS = { least: 2, most: 12 };

/** The least count of each shade of countries, from the palest to the darkest. */
export function shadeSteps({ top }: Tally): number[] {
  const counts = top.map(({ count }) => count).reverse();
  const least = Array.from({ length: SHADES }, (_, index) => counts[Math.floor((index / SHADES) * counts.length)] ?? 1);
  return [...new Set(least)];
}

/** Countries by how many devices were last seen in them; places, and routes from first to last seen, on top. */
export function worldMap({ countries, places, routes }: Report): Markup {
  const { top } = countries.last_seen;
  const picture = {
    id: "map",
    title: "World map of first and last seen",
    description: describe(top),
    width: WIDTH,
    height: HEIGHT,
    className: "chart map",
  };
  const { features } = countryShapes();
  const project = projectionOf(features);
  return drawPicture(picture, [
    ...drawCountries(features, countries.last_seen, project),
    ...drawRoutes(routes.slice(0, MOST_ROUTES), project),
    ...drawPlaces(places.slice(0, MOST_PLACES), project),
  ]);
}

function describe(top: readonly { value: string; count: number }[]): string {
  const most = top.slice(0, 5).map(({ value, count }) => `${countryName(value)} ${numberText(count)}`);
  return `Devices by the country that they were last seen in: ${most.join(", ") || "none known"}. The table of countries has all of them.`;
}

type Country = ReturnType<typeof countryShapes>["features"][number];
/** Where a longitude and a latitude are on the map. */
type Projection = (degrees: readonly number[]) => readonly [number, number];

/** The projection that makes all countries fill the map. */
function projectionOf(features: readonly Country[]): Projection {
  const points = features.flatMap(({ geometry }) => geometry.coordinates.flat(2).map(equalEarth));
  const [left, top] = [0, 1].map((axis) =>
    points.reduce((least, point) => Math.min(least, point[axis] ?? 0), Infinity),
  );
  const [right, bottom] = [0, 1].map((axis) =>
    points.reduce((most, point) => Math.max(most, point[axis] ?? 0), -Infinity),
  );
  const scaleX = (WIDTH - 2 * MARGIN) / ((right ?? 1) - (left ?? 0));
  const scaleY = (HEIGHT - 2 * MARGIN) / ((bottom ?? 1) - (top ?? 0));
  return (degrees) => {
    const [x, y] = equalEarth(degrees);
    return [MARGIN + (x - (left ?? 0)) * scaleX, MARGIN + (y - (top ?? 0)) * scaleY];
  };
}

function drawCountries(features: readonly Country[], tally: Tally, project: Projection): Markup[] {
  const steps = shadeSteps(tally);
  const counts = new Map(tally.top.map(({ value, count }) => [value, count]));
  return features.map(({ geometry, properties: { name } }) => {
    const count = name === "" ? undefined : counts.get(name);
    const shade = count === undefined ? "--land" : `--shade-${steps.filter((least) => least <= count).length}`;
    const path = geometry.coordinates.flat().map((ring) => `M${ring.map((point) => pair(project(point))).join("L")}Z`);
    return html`<path d="${path.join("")}" fill="var(${shade})" stroke="var(--card)" stroke-width="0.6"/>`;
  });
}

function drawRoutes(routes: readonly RouteCount[], project: Projection): Markup[] {
  const most = Math.max(1, ...routes.map(({ count }) => count));
  return routes.map(({ from: [fromLatitude, fromLongitude], to: [toLatitude, toLongitude], count }) => {
    const [x1, y1] = project([fromLongitude, fromLatitude]);
    const [x2, y2] = project([toLongitude, toLatitude]);
    const middle = [(x1 + x2) / 2 - (y1 - y2) * BEND, (y1 + y2) / 2 - (x2 - x1) * BEND] as const;
    const path = `M${pair([x1, y1])}Q${pair(middle)} ${pair([x2, y2])}`;
    const width = rounded(0.8 + (1.6 * count) / most);
    return html`<path d="${path}" fill="none" stroke="var(--route)" stroke-width="${width}"/>`;
  });
}

function drawPlaces(places: readonly PlaceCount[], project: Projection): Markup[] {
  const most = Math.max(1, ...places.flatMap(({ first_seen, last_seen }) => [first_seen, last_seen]));
  const circles = (key: "first_seen" | "last_seen", fill: string, stroke: string, width: number) =>
    places
      .filter((place) => place[key] > 0)
      .map((place) => {
        const [x, y] = project([place.longitude, place.latitude]).map(rounded);
        // The area shows the count, not the radius.
        const radius = RADIUS.least + (RADIUS.most - RADIUS.least) * Math.sqrt(place[key] / most);
        return html`<circle cx="${x ?? 0}" cy="${y ?? 0}" r="${rounded(radius)}" fill="${fill}" stroke="${stroke}" stroke-width="${width}"/>`;
      });
  return [
    ...circles("last_seen", "var(--last-soft)", "var(--last)", 0.8),
    ...circles("first_seen", "none", "var(--first)", 1.2),
  ];
}

function pair([x, y]: readonly [number, number]): string {
  return `${rounded(x)} ${rounded(y)}`;
}
