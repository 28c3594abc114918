import type { SessionType } from "../types.js";

/** The languages that titles are written in. */
export type Language = "ar" | "de" | "en" | "es" | "fr" | "hi" | "ja" | "ko" | "pl" | "pt" | "ru" | "sv" | "tr" | "zh";

interface Vocabulary {
  names: readonly string[];
  /** How a thing is said to belong to somebody. */
  of: (owner: string, thing: string) => string;
  things: readonly string[];
  jobs: readonly string[];
}

const dash = (owner: string, thing: string) => `${thing} – ${owner}`;
const possessive = (particle: string) => (owner: string, thing: string) => `${owner}${particle}${thing}`;
const preposition = (word: string) => (owner: string, thing: string) => `${thing} ${word} ${owner}`;

const VOCABULARIES: Readonly<Record<Language, Vocabulary>> = {
  ar: {
    names: ["ليلى", "أحمد", "فاطمة", "يوسف", "مريم", "عمر"],
    of: dash,
    things: ["حاسوب المكتب", "هاتف", "حاسوب محمول", "iPad المنزل"],
    jobs: ["مزامنة الفواتير", "تقرير ليلي", "تصدير البيانات"],
  },
  de: {
    names: ["Jürgen", "Anna", "Björn", "Käthe", "Lukas", "Sören"],
    of: dash,
    things: ["Dienstlaptop", "Büro-PC", "MacBook Pro", "Handy 📱"],
    jobs: ["Rechnungsabgleich", "Nächtlicher Export", "Prüfläufer"],
  },
  en: {
    names: ["Ada", "Grace", "Linus", "Margaret", "O'Brien", "Priya", "Sam", "Zoë"],
    of: possessive("'s "),
    things: ["MacBook Pro", "iPhone", "work laptop", "ThinkPad X1", "Pixel", "desktop, 2nd floor"],
    jobs: ["billing-sync", "nightly export", "ci runner", "deploy bot 🚀", "webhook relay", "staging smoke test"],
  },
  es: {
    names: ["Íñigo", "Lucía", "José", "Sofía", "Ángel", "Begoña"],
    of: preposition("de"),
    things: ["Portátil", "Móvil", "Ordenador de la oficina", "Tableta"],
    jobs: ["sincronización de facturas", "exportación nocturna", "robot de despliegue"],
  },
  fr: {
    names: ["Amélie", "François", "Zoé", "Gaël", "Hélène", "Noël"],
    of: preposition("de"),
    things: ["Portable", "Téléphone", "Poste à l’accueil", "MacBook Air"],
    jobs: ["rapprochement des factures", "export de nuit", "robot d’intégration"],
  },
  hi: {
    names: ["आरव", "दीया", "ईशान", "कविता", "रोहन", "सुनीता"],
    of: possessive(" का "),
    things: ["लैपटॉप", "फ़ोन", "दफ़्तर का कंप्यूटर", "टैबलेट"],
    jobs: ["बिल मिलान", "रात्रि निर्यात", "परीक्षण रनर"],
  },
  ja: {
    names: ["田中", "佐藤", "鈴木", "さくら", "ハルト", "結衣"],
    of: possessive("の"),
    things: ["iPhone", "ノートPC", "会社のMac", "自宅デスクトップ 🏠"],
    jobs: ["請求同期", "夜間バッチ", "テストランナー"],
  },
  ko: {
    names: ["민준", "서연", "지훈", "하은", "도윤", "수아"],
    of: possessive("의 "),
    things: ["노트북", "갤럭시", "사무실 PC", "아이패드"],
    jobs: ["청구 동기화", "야간 내보내기", "배포 봇"],
  },
  pl: {
    names: ["Łukasz", "Żaneta", "Michał", "Świętosława", "Ola", "Grzegorz"],
    of: dash,
    things: ["Laptop służbowy", "Telefon", "Komputer w biurze", "Tablet"],
    jobs: ["uzgadnianie faktur", "nocny eksport", "robot wdrożeń"],
  },
  pt: {
    names: ["João", "Conceição", "Mário", "Inês", "Antônio", "Luísa"],
    of: preposition("de"),
    things: ["Notebook", "Celular", "Computador da recepção", "iPad"],
    jobs: ["conciliação de faturas", "exportação noturna", "robô de implantação"],
  },
  ru: {
    names: ["Алексей", "Мария", "Дмитрий", "Ёлка", "Юлия", "Сергей"],
    of: dash,
    things: ["Рабочий ноутбук", "Телефон", "Домашний ПК", "Планшет"],
    jobs: ["сверка счетов", "ночная выгрузка", "сборщик"],
  },
  sv: {
    names: ["Åsa", "Örjan", "Märta", "Björn", "Ebba", "Nils"],
    of: possessive("s "),
    things: ["jobbdator", "mobil", "MacBook", "surfplatta"],
    jobs: ["fakturasynk", "nattlig export", "driftsättning"],
  },
  tr: {
    names: ["Işıl", "Çağrı", "Ömer", "Şebnem", "Gökçe", "İpek"],
    of: dash,
    things: ["İş dizüstüsü", "Telefon", "Ofis bilgisayarı", "Tablet"],
    jobs: ["fatura eşleme", "gece dışa aktarımı", "dağıtım botu"],
  },
  zh: {
    names: ["王伟", "李娜", "張偉", "刘洋", "陳怡君", "赵敏"],
    of: possessive("的"),
    things: ["笔记本电脑", "手机", "办公室电脑", "MacBook 💻"],
    jobs: ["账单同步", "夜间导出", "測試執行器"],
  },
};

const AGENTS = ["coding agent", "Claude Code", "Cursor", "research agent 🤖", "MCP Inspector"];
const NUMBERS = Array.from({ length: 24 }, (_, index) => String(index + 1).padStart(2, "0"));

function titlesOf({ names, of, things, jobs }: Vocabulary): Record<SessionType, string[]> {
  return {
    browser: names.flatMap((name) => things.map((thing) => of(name, thing))),
    api: jobs.flatMap((job) => NUMBERS.map((number) => `${job} ${number}`)),
    mcp: names.flatMap((name) => AGENTS.map((agent) => `${agent} (${name})`)),
  };
}

/** A run of titles inside {@link TITLES}. */
interface Run {
  start: number;
  length: number;
}

const titles: string[] = [];

function addRun(list: readonly string[]): Run {
  const run = { start: titles.length, length: list.length };
  titles.push(...list);
  return run;
}

/** Where the titles of a language and a session type stand in {@link TITLES}. */
export const TITLE_RUNS = Object.fromEntries(
  Object.entries(VOCABULARIES).map(([language, vocabulary]) => {
    const { browser, api, mcp } = titlesOf(vocabulary);
    return [language, { browser: addRun(browser), api: addRun(api), mcp: addRun(mcp) }];
  }),
) as Readonly<Record<Language, Readonly<Record<SessionType, Run>>>>;

/** Every title that a generated device can have. */
export const TITLES: readonly string[] = titles;

/** For each of {@link TITLES} its place in the order of UTF-16 code units; equal titles have equal ranks. */
export const TITLE_RANKS: Uint16Array = rank(TITLES);

function rank(list: readonly string[]): Uint16Array {
  const ranks = new Map([...new Set(list)].sort().map((title, index) => [title, index]));
  return Uint16Array.from(list, (title) => ranks.get(title) ?? 0);
}

/** Titles of pools. */
export const POOL_TITLES: readonly string[] = [
  "Production agents",
  "Staging",
  "Support – Europe",
  "客户支持",
  "Équipe données",
  "Партнёры",
  "開発チーム",
  "فريق المبيعات",
  "सहायता दल",
  "Field devices 📡",
  "CI and deploys",
  "Überwachung",
];

/** Titles of domains. */
export const DOMAIN_TITLES: readonly string[] = [
  "agents.example.com",
  "Example GmbH – München",
  "例子有限公司",
  "Exemple SARL",
  "Internal tools",
  "株式会社サンプル",
  "Пример",
  "مثال للتجارة",
];
