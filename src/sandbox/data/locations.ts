/** A city as an IP database describes it, with names for the devices there. */
export interface SampleLocation {
  city: string;
  country: string;
  /** The subdivision part of ISO 3166-2. */
  region: string;
  latLong: [number, number];
  timezone: string;
  /** Networks that serve the country. */
  asns: readonly number[];
  owners: readonly string[];
  things: readonly string[];
}

type CityRow = readonly [string, string, string, SampleLocation["latLong"], string, readonly number[], string, string];

const ROWS: readonly CityRow[] = [
  ["San Francisco", "US", "CA", [37.7749, -122.4194], "America/Los_Angeles", [7922, 701], "Ada O'Brien", "MacBook Pro"],
  ["New York", "US", "NY", [40.7128, -74.006], "America/New_York", [7922, 7018], "Grace Zoë", "desktop, 2nd floor"],
  ["Bogotá", "CO", "DC", [4.711, -74.0721], "America/Bogota", [10620], "Lucía Íñigo", "Portátil"],
  ["São Paulo", "BR", "SP", [-23.5505, -46.6333], "America/Sao_Paulo", [27699, 28573], "João Conceição", "Celular"],
  ["Paris", "FR", "IDF", [48.8566, 2.3522], "Europe/Paris", [3215, 12322], "Amélie François", "Poste à l’accueil"],
  ["Berlin", "DE", "BE", [52.52, 13.405], "Europe/Berlin", [3320, 24940], "Jürgen Käthe", "Büro-PC"],
  ["Warszawa", "PL", "14", [52.2297, 21.0122], "Europe/Warsaw", [5617], "Łukasz Żaneta", "Telefon"],
  ["İstanbul", "TR", "34", [41.0082, 28.9784], "Europe/Istanbul", [9121, 34984], "Işıl Çağrı", "Ofis bilgisayarı"],
  ["Москва", "RU", "MOW", [55.7558, 37.6173], "Europe/Moscow", [12389, 8402], "Алексей Юлия", "Рабочий ноутбук"],
  ["القاهرة", "EG", "C", [30.0444, 31.2357], "Africa/Cairo", [8452, 24863], "ليلى أحمد", "حاسوب المكتب"],
  ["Nairobi", "KE", "30", [-1.2921, 36.8219], "Africa/Nairobi", [33771], "Wanjikũ Otieno", "Pixel"],
  ["मुंबई", "IN", "MH", [19.076, 72.8777], "Asia/Kolkata", [9829, 24560], "आरव सुनीता", "दफ़्तर का कंप्यूटर"],
  ["上海", "CN", "SH", [31.2304, 121.4737], "Asia/Shanghai", [4134, 4837], "王伟 李娜", "笔记本电脑"],
  ["서울", "KR", "11", [37.5665, 126.978], "Asia/Seoul", [4766, 9318], "민준 서연", "노트북"],
  ["東京", "JP", "13", [35.6762, 139.6503], "Asia/Tokyo", [2516, 17676], "田中 さくら", "会社のMac 🏠"],
  ["Sydney", "AU", "NSW", [-33.8688, 151.2093], "Australia/Sydney", [1221, 7545], "Margaret Sam", "ThinkPad X1"],
];

/** Cities worldwide whose coordinates, country, region, timezone, networks and names belong together. */
export const LOCATIONS: readonly SampleLocation[] = ROWS.map(
  ([city, country, region, latLong, timezone, asns, owners, thing]) => {
    return { city, country, region, latLong, timezone, asns, owners: owners.split(" "), things: ["iPhone", thing] };
  },
);

/** Those whose names are in Latin script. */
export const LATIN_LOCATIONS: readonly SampleLocation[] = LOCATIONS.filter(({ city, owners, things }) =>
  /^[\p{Script=Latin}\p{Script=Common}\p{M}]*$/u.test([city, ...owners, ...things].join("")),
);
