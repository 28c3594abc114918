import type { Language } from "./titles.js";

/** A city as an IP database would tell it. */
export interface Place {
  city: string;
  country: string;
  /** The subdivision part of ISO 3166-2. */
  region: string;
  latLong: readonly [number, number];
  timezone: string;
  /** The language that titles of devices there are written in. */
  language: Language;
  /** Networks that serve the country. */
  asns: readonly number[];
}

const ASNS: Readonly<Record<string, readonly number[]>> = {
  AE: [5384, 15802],
  AR: [7303, 22927],
  AU: [1221, 7545],
  BR: [27699, 28573],
  CA: [577, 812, 6327],
  CH: [3303, 6730],
  CL: [7418, 27651],
  CN: [4134, 4837, 9808],
  CO: [10620, 13489],
  DE: [3320, 3209, 24940],
  DK: [3292],
  EG: [8452, 24863],
  ES: [3352, 12479],
  FI: [719, 1759],
  FR: [3215, 12322, 15557],
  GB: [2856, 5089, 5607],
  HK: [4760, 9304],
  IE: [5466, 6830],
  IN: [9829, 24560, 55836],
  IT: [3269, 30722],
  JP: [2516, 4713, 17676],
  KE: [33771, 36926],
  KR: [4766, 9318],
  MX: [8151, 13999],
  NG: [29465, 37148],
  NL: [1136, 33915],
  NO: [2119, 29695],
  NZ: [4771, 9790],
  PL: [5617, 12741],
  PT: [3243, 2860],
  RU: [12389, 8402, 25513],
  SA: [25019, 35819],
  SE: [3301, 1257],
  SG: [3758, 4773],
  TR: [9121, 34984],
  TW: [3462, 9924],
  US: [7922, 701, 20115, 7018, 21928],
  ZA: [3741, 37457],
};

type Row = readonly [string, string, string, number, number, string, Language];

const ROWS: readonly Row[] = [
  ["San Francisco", "US", "CA", 37.7749, -122.4194, "America/Los_Angeles", "en"],
  ["Seattle", "US", "WA", 47.6062, -122.3321, "America/Los_Angeles", "en"],
  ["Denver", "US", "CO", 39.7392, -104.9903, "America/Denver", "en"],
  ["Austin", "US", "TX", 30.2672, -97.7431, "America/Chicago", "en"],
  ["Chicago", "US", "IL", 41.8781, -87.6298, "America/Chicago", "en"],
  ["New York", "US", "NY", 40.7128, -74.006, "America/New_York", "en"],
  ["Ashburn", "US", "VA", 39.0438, -77.4874, "America/New_York", "en"],
  ["Toronto", "CA", "ON", 43.6532, -79.3832, "America/Toronto", "en"],
  ["Montréal", "CA", "QC", 45.5019, -73.5674, "America/Toronto", "fr"],
  ["Vancouver", "CA", "BC", 49.2827, -123.1207, "America/Vancouver", "en"],
  ["Ciudad de México", "MX", "CMX", 19.4326, -99.1332, "America/Mexico_City", "es"],
  ["Bogotá", "CO", "DC", 4.711, -74.0721, "America/Bogota", "es"],
  ["São Paulo", "BR", "SP", -23.5505, -46.6333, "America/Sao_Paulo", "pt"],
  ["Recife", "BR", "PE", -8.0476, -34.877, "America/Recife", "pt"],
  ["Buenos Aires", "AR", "C", -34.6037, -58.3816, "America/Argentina/Buenos_Aires", "es"],
  ["Santiago", "CL", "RM", -33.4489, -70.6693, "America/Santiago", "es"],
  ["London", "GB", "ENG", 51.5074, -0.1278, "Europe/London", "en"],
  ["Edinburgh", "GB", "SCT", 55.9533, -3.1883, "Europe/London", "en"],
  ["Dublin", "IE", "L", 53.3498, -6.2603, "Europe/Dublin", "en"],
  ["Paris", "FR", "IDF", 48.8566, 2.3522, "Europe/Paris", "fr"],
  ["Lyon", "FR", "ARA", 45.764, 4.8357, "Europe/Paris", "fr"],
  ["Amsterdam", "NL", "NH", 52.3676, 4.9041, "Europe/Amsterdam", "en"],
  ["Berlin", "DE", "BE", 52.52, 13.405, "Europe/Berlin", "de"],
  ["München", "DE", "BY", 48.1351, 11.582, "Europe/Berlin", "de"],
  ["Zürich", "CH", "ZH", 47.3769, 8.5417, "Europe/Zurich", "de"],
  ["Madrid", "ES", "MD", 40.4168, -3.7038, "Europe/Madrid", "es"],
  ["Lisboa", "PT", "11", 38.7223, -9.1393, "Europe/Lisbon", "pt"],
  ["Milano", "IT", "25", 45.4642, 9.19, "Europe/Rome", "en"],
  ["Stockholm", "SE", "AB", 59.3293, 18.0686, "Europe/Stockholm", "sv"],
  ["Göteborg", "SE", "O", 57.7089, 11.9746, "Europe/Stockholm", "sv"],
  ["Oslo", "NO", "03", 59.9139, 10.7522, "Europe/Oslo", "en"],
  ["København", "DK", "84", 55.6761, 12.5683, "Europe/Copenhagen", "en"],
  ["Helsinki", "FI", "18", 60.1699, 24.9384, "Europe/Helsinki", "en"],
  ["Warszawa", "PL", "14", 52.2297, 21.0122, "Europe/Warsaw", "pl"],
  ["Kraków", "PL", "12", 50.0647, 19.945, "Europe/Warsaw", "pl"],
  ["Москва", "RU", "MOW", 55.7558, 37.6173, "Europe/Moscow", "ru"],
  ["Новосибирск", "RU", "NVS", 55.0084, 82.9357, "Asia/Novosibirsk", "ru"],
  ["İstanbul", "TR", "34", 41.0082, 28.9784, "Europe/Istanbul", "tr"],
  ["القاهرة", "EG", "C", 30.0444, 31.2357, "Africa/Cairo", "ar"],
  ["الرياض", "SA", "01", 24.7136, 46.6753, "Asia/Riyadh", "ar"],
  ["Dubai", "AE", "DU", 25.2048, 55.2708, "Asia/Dubai", "ar"],
  ["Lagos", "NG", "LA", 6.5244, 3.3792, "Africa/Lagos", "en"],
  ["Nairobi", "KE", "30", -1.2921, 36.8219, "Africa/Nairobi", "en"],
  ["Cape Town", "ZA", "WC", -33.9249, 18.4241, "Africa/Johannesburg", "en"],
  ["Bengaluru", "IN", "KA", 12.9716, 77.5946, "Asia/Kolkata", "hi"],
  ["मुंबई", "IN", "MH", 19.076, 72.8777, "Asia/Kolkata", "hi"],
  ["Singapore", "SG", "01", 1.3521, 103.8198, "Asia/Singapore", "en"],
  ["Hong Kong", "HK", "HCW", 22.3193, 114.1694, "Asia/Hong_Kong", "zh"],
  ["上海", "CN", "SH", 31.2304, 121.4737, "Asia/Shanghai", "zh"],
  ["台北", "TW", "TPE", 25.033, 121.5654, "Asia/Taipei", "zh"],
  ["서울", "KR", "11", 37.5665, 126.978, "Asia/Seoul", "ko"],
  ["東京", "JP", "13", 35.6762, 139.6503, "Asia/Tokyo", "ja"],
  ["大阪", "JP", "27", 34.6937, 135.5023, "Asia/Tokyo", "ja"],
  ["Sydney", "AU", "NSW", -33.8688, 151.2093, "Australia/Sydney", "en"],
  ["Perth", "AU", "WA", -31.9505, 115.8605, "Australia/Perth", "en"],
  ["Auckland", "NZ", "AUK", -36.8509, 174.7645, "Pacific/Auckland", "en"],
];

/** Cities worldwide whose coordinates, country, region, timezone and networks belong together. */
export const PLACES: readonly Place[] = ROWS.map(
  ([city, country, region, latitude, longitude, timezone, language]) => ({
    city,
    country,
    region,
    latLong: [latitude, longitude],
    timezone,
    language,
    asns: ASNS[country] ?? [],
  }),
);
