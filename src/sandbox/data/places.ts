import type { Language } from "./titles.js";

/** A city as an IP database describes it. */
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

const ROWS: readonly (readonly [string, string, string, number, number, string, Language, readonly number[]])[] = [
  ["San Francisco", "US", "CA", 37.7749, -122.4194, "America/Los_Angeles", "en", [7922, 701, 20115, 7018, 21928]],
  ["Seattle", "US", "WA", 47.6062, -122.3321, "America/Los_Angeles", "en", [7922, 701, 20115, 7018, 21928]],
  ["Chicago", "US", "IL", 41.8781, -87.6298, "America/Chicago", "en", [7922, 701, 20115, 7018, 21928]],
  ["New York", "US", "NY", 40.7128, -74.006, "America/New_York", "en", [7922, 701, 20115, 7018, 21928]],
  ["Toronto", "CA", "ON", 43.6532, -79.3832, "America/Toronto", "en", [577, 812, 6327]],
  ["Montréal", "CA", "QC", 45.5019, -73.5674, "America/Toronto", "fr", [577, 812, 6327]],
  ["Ciudad de México", "MX", "CMX", 19.4326, -99.1332, "America/Mexico_City", "es", [8151, 13999]],
  ["Bogotá", "CO", "DC", 4.711, -74.0721, "America/Bogota", "es", [10620, 13489]],
  ["São Paulo", "BR", "SP", -23.5505, -46.6333, "America/Sao_Paulo", "pt", [27699, 28573]],
  ["Buenos Aires", "AR", "C", -34.6037, -58.3816, "America/Argentina/Buenos_Aires", "es", [7303, 22927]],
  ["London", "GB", "ENG", 51.5074, -0.1278, "Europe/London", "en", [2856, 5089, 5607]],
  ["Dublin", "IE", "L", 53.3498, -6.2603, "Europe/Dublin", "en", [5466, 6830]],
  ["Paris", "FR", "IDF", 48.8566, 2.3522, "Europe/Paris", "fr", [3215, 12322, 15557]],
  ["Amsterdam", "NL", "NH", 52.3676, 4.9041, "Europe/Amsterdam", "en", [1136, 33915]],
  ["Berlin", "DE", "BE", 52.52, 13.405, "Europe/Berlin", "de", [3320, 3209, 24940]],
  ["München", "DE", "BY", 48.1351, 11.582, "Europe/Berlin", "de", [3320, 3209, 24940]],
  ["Zürich", "CH", "ZH", 47.3769, 8.5417, "Europe/Zurich", "de", [3303, 6730]],
  ["Madrid", "ES", "MD", 40.4168, -3.7038, "Europe/Madrid", "es", [3352, 12479]],
  ["Lisboa", "PT", "11", 38.7223, -9.1393, "Europe/Lisbon", "pt", [3243, 2860]],
  ["Stockholm", "SE", "AB", 59.3293, 18.0686, "Europe/Stockholm", "en", [3301, 1257]],
  ["Warszawa", "PL", "14", 52.2297, 21.0122, "Europe/Warsaw", "pl", [5617, 12741]],
  ["Москва", "RU", "MOW", 55.7558, 37.6173, "Europe/Moscow", "ru", [12389, 8402, 25513]],
  ["Новосибирск", "RU", "NVS", 55.0084, 82.9357, "Asia/Novosibirsk", "ru", [12389, 8402, 25513]],
  ["İstanbul", "TR", "34", 41.0082, 28.9784, "Europe/Istanbul", "tr", [9121, 34984]],
  ["القاهرة", "EG", "C", 30.0444, 31.2357, "Africa/Cairo", "ar", [8452, 24863]],
  ["الرياض", "SA", "01", 24.7136, 46.6753, "Asia/Riyadh", "ar", [25019, 35819]],
  ["Dubai", "AE", "DU", 25.2048, 55.2708, "Asia/Dubai", "ar", [5384, 15802]],
  ["Lagos", "NG", "LA", 6.5244, 3.3792, "Africa/Lagos", "en", [29465, 37148]],
  ["Nairobi", "KE", "30", -1.2921, 36.8219, "Africa/Nairobi", "en", [33771, 36926]],
  ["Cape Town", "ZA", "WC", -33.9249, 18.4241, "Africa/Johannesburg", "en", [3741, 37457]],
  ["Bengaluru", "IN", "KA", 12.9716, 77.5946, "Asia/Kolkata", "hi", [9829, 24560, 55836]],
  ["मुंबई", "IN", "MH", 19.076, 72.8777, "Asia/Kolkata", "hi", [9829, 24560, 55836]],
  ["Singapore", "SG", "01", 1.3521, 103.8198, "Asia/Singapore", "en", [3758, 4773]],
  ["Hong Kong", "HK", "HCW", 22.3193, 114.1694, "Asia/Hong_Kong", "zh", [4760, 9304]],
  ["上海", "CN", "SH", 31.2304, 121.4737, "Asia/Shanghai", "zh", [4134, 4837, 9808]],
  ["台北", "TW", "TPE", 25.033, 121.5654, "Asia/Taipei", "zh", [3462, 9924]],
  ["서울", "KR", "11", 37.5665, 126.978, "Asia/Seoul", "ko", [4766, 9318]],
  ["東京", "JP", "13", 35.6762, 139.6503, "Asia/Tokyo", "ja", [2516, 4713, 17676]],
  ["Sydney", "AU", "NSW", -33.8688, 151.2093, "Australia/Sydney", "en", [1221, 7545]],
  ["Auckland", "NZ", "AUK", -36.8509, 174.7645, "Pacific/Auckland", "en", [4771, 9790]],
];

/** Cities worldwide whose coordinates, country, region, timezone and networks belong together. */
export const PLACES: readonly Place[] = ROWS.map(
  ([city, country, region, latitude, longitude, timezone, language, asns]) => {
    return { city, country, region, latLong: [latitude, longitude], timezone, language, asns };
  },
);
