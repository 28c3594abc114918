// Packages that some tests need, by what loads them: test/helpers/lab.ts does, where they are installed.
export const PACKAGES = {
  "@opentelemetry/exporter-prometheus": () => import("@opentelemetry/exporter-prometheus"),
  "csv-stringify/sync": () => import("csv-stringify/sync"),
  ioredis5: () => import("ioredis5"),
  iovalkey: () => import("iovalkey"),
  msw3: () => import("msw3"),
  "msw3/node": () => import("msw3/node"),
  nock15: () => import("nock15"),
  undici: () => import("undici"),
};
