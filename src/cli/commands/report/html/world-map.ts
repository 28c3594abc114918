import { registerMap } from "echarts/core";
import type { PlaceCount, Report, RouteCount, Tally } from "../model.js";
import { countryName, numberText } from "../numbers.js";
import type { Markup } from "./markup.js";
import { drawChart } from "./svg.js";
import { countryShapes, equalEarth } from "./world.js";

const WORLD = "world";
const WIDTH = 1080;
const HEIGHT = 500;
/** Shades of countries, each with the same number of countries. */
const SHADES = 5;
const MOST_PLACES = 150;
const MOST_ROUTES = 40;
const RADIUS = { least: 2, most: 12 };

/** The least count of each shade of countries, from the palest to the darkest. */
export function shadeSteps({ top }: Tally): number[] {
  const counts = top.map(({ count }) => count).reverse();
  const least = Array.from({ length: SHADES }, (_, index) => counts[Math.floor((index / SHADES) * counts.length)] ?? 1);
  return [...new Set(least)];
}

/** Countries by how many devices were last seen in them; places, and routes from first to last seen, on top. */
export function worldMap({ countries, places, routes }: Report): Markup {
  registerMap(WORLD, countryShapes() as Parameters<typeof registerMap>[1]);
  const { top } = countries.last_seen;
  const steps = shadeSteps(countries.last_seen);
  const picture = {
    id: "map",
    title: "World map of first and last seen",
    description: describe(top),
    width: WIDTH,
    height: HEIGHT,
    className: "chart map",
  };
  const regions = top.map(({ value, count }) => ({
    name: value,
    itemStyle: { areaColor: `var(--shade-${steps.filter((least) => least <= count).length})` },
  }));
  return drawChart(picture, {
    geo: {
      map: WORLD,
      // The map is not interactive: positions are never converted back to degrees.
      projection: { project: equalEarth, unproject: (point: number[]) => point },
      regions,
      left: 4,
      right: 4,
      top: 4,
      bottom: 4,
      silent: true,
      itemStyle: { areaColor: "var(--land)", borderColor: "var(--card)", borderWidth: 0.6 },
    },
    series: [routeSeries(routes.slice(0, MOST_ROUTES)), ...placeSeries(places.slice(0, MOST_PLACES))],
  });
}

function describe(top: readonly { value: string; count: number }[]): string {
  const most = top.slice(0, 5).map(({ value, count }) => `${countryName(value)} ${numberText(count)}`);
  return `Devices by the country that they were last seen in: ${most.join(", ") || "none known"}. The table of countries has all of them.`;
}

function routeSeries(routes: readonly RouteCount[]): object {
  const most = Math.max(1, ...routes.map(({ count }) => count));
  return {
    type: "lines",
    coordinateSystem: "geo",
    silent: true,
    lineStyle: { color: "var(--route)", curveness: 0.22, opacity: 1 },
    data: routes.map(({ from: [fromLatitude, fromLongitude], to: [toLatitude, toLongitude], count }) => ({
      coords: [
        [fromLongitude, fromLatitude],
        [toLongitude, toLatitude],
      ],
      lineStyle: { width: 0.8 + (1.6 * count) / most },
    })),
  };
}

function placeSeries(places: readonly PlaceCount[]): object[] {
  const most = Math.max(1, ...places.flatMap(({ first_seen, last_seen }) => [first_seen, last_seen]));
  const layer = (key: "first_seen" | "last_seen", itemStyle: object) => ({
    type: "scatter",
    coordinateSystem: "geo",
    silent: true,
    itemStyle,
    data: places
      .filter((place) => place[key] > 0)
      .map((place) => ({
        value: [place.longitude, place.latitude],
        // The area shows the count, not the radius.
        symbolSize: 2 * (RADIUS.least + (RADIUS.most - RADIUS.least) * Math.sqrt(place[key] / most)),
      })),
  });
  return [
    layer("last_seen", { color: "var(--last-soft)", borderColor: "var(--last)", borderWidth: 0.8, opacity: 1 }),
    layer("first_seen", { color: "none", borderColor: "var(--first)", borderWidth: 1.2, opacity: 1 }),
  ];
}
