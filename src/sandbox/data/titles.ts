import type { SessionType } from "../wire-types.js";
import type { Draws } from "./random.js";

/** The words that titles of devices are made of. */
interface Vocabulary {
  owners: readonly string[];
  things: readonly string[];
  jobs: readonly string[];
  /** What joins an owner to a thing; without it the thing comes first, then a dash. */
  genitive?: string;
}

const VOCABULARIES = {
  ar: {
    owners: ["ليلى", "أحمد", "فاطمة", "يوسف", "مريم", "عمر"],
    things: ["حاسوب المكتب", "هاتف", "حاسوب محمول", "iPad المنزل"],
    jobs: ["مزامنة الفواتير", "تقرير ليلي", "تصدير البيانات"],
  },
  de: {
    owners: ["Jürgen", "Anna", "Björn", "Käthe", "Lukas", "Sören"],
    things: ["Dienstlaptop", "Büro-PC", "MacBook Pro", "Handy 📱"],
    jobs: ["Rechnungsabgleich", "Nächtlicher Export", "Prüfläufer"],
  },
  en: {
    owners: ["Ada", "Grace", "Linus", "Margaret", "O'Brien", "Priya", "Sam", "Zoë"],
    things: ["MacBook Pro", "iPhone", "work laptop", "ThinkPad X1", "Pixel", "desktop, 2nd floor"],
    jobs: ["billing-sync", "nightly export", "ci runner", "deploy bot 🚀", "webhook relay", "staging smoke test"],
    genitive: "'s ",
  },
  es: {
    owners: ["Íñigo", "Lucía", "José", "Sofía", "Ángel", "Begoña"],
    things: ["Portátil", "Móvil", "Ordenador de la oficina", "Tableta"],
    jobs: ["sincronización de facturas", "exportación nocturna", "robot de despliegue"],
  },
  fr: {
    owners: ["Amélie", "François", "Zoé", "Gaël", "Hélène", "Noël"],
    things: ["Portable", "Téléphone", "Poste à l’accueil", "MacBook Air"],
    jobs: ["rapprochement des factures", "export de nuit", "robot d’intégration"],
  },
  hi: {
    owners: ["आरव", "दीया", "ईशान", "कविता", "रोहन", "सुनीता"],
    things: ["लैपटॉप", "फ़ोन", "दफ़्तर का कंप्यूटर", "टैबलेट"],
    jobs: ["बिल मिलान", "रात्रि निर्यात", "परीक्षण रनर"],
    genitive: " का ",
  },
  ja: {
    owners: ["田中", "佐藤", "鈴木", "さくら", "ハルト", "結衣"],
    things: ["iPhone", "ノートPC", "会社のMac", "自宅デスクトップ 🏠"],
    jobs: ["請求同期", "夜間バッチ", "テストランナー"],
    genitive: "の",
  },
  ko: {
    owners: ["민준", "서연", "지훈", "하은", "도윤", "수아"],
    things: ["노트북", "갤럭시", "사무실 PC", "아이패드"],
    jobs: ["청구 동기화", "야간 내보내기", "배포 봇"],
    genitive: "의 ",
  },
  pl: {
    owners: ["Łukasz", "Żaneta", "Michał", "Świętosława", "Ola", "Grzegorz"],
    things: ["Laptop służbowy", "Telefon", "Komputer w biurze", "Tablet"],
    jobs: ["uzgadnianie faktur", "nocny eksport", "robot wdrożeń"],
  },
  pt: {
    owners: ["João", "Conceição", "Mário", "Inês", "Antônio", "Luísa"],
    things: ["Notebook", "Celular", "Computador da recepção", "iPad"],
    jobs: ["conciliação de faturas", "exportação noturna", "robô de implantação"],
  },
  ru: {
    owners: ["Алексей", "Мария", "Дмитрий", "Ёлка", "Юлия", "Сергей"],
    things: ["Рабочий ноутбук", "Телефон", "Домашний ПК", "Планшет"],
    jobs: ["сверка счетов", "ночная выгрузка", "сборщик"],
  },
  tr: {
    owners: ["Işıl", "Çağrı", "Ömer", "Şebnem", "Gökçe", "İpek"],
    things: ["İş dizüstüsü", "Telefon", "Ofis bilgisayarı", "Tablet"],
    jobs: ["fatura eşleme", "gece dışa aktarımı", "dağıtım botu"],
  },
  zh: {
    owners: ["王伟", "李娜", "張偉", "刘洋", "陳怡君", "赵敏"],
    things: ["笔记本电脑", "手机", "办公室电脑", "MacBook 💻"],
    jobs: ["账单同步", "夜间导出", "測試執行器"],
    genitive: "的",
  },
} satisfies Readonly<Record<string, Vocabulary>>;

/** The languages that titles of devices are written in. */
export type Language = keyof typeof VOCABULARIES;

const AGENTS = ["coding agent", "Claude Code", "Cursor", "research agent 🤖", "MCP Inspector"];

/** A title for a device: a person's thing, a numbered job, or an agent with its person. */
export function titleOf(draws: Draws, language: Language, session: SessionType): string {
  const { owners, things, jobs, genitive }: Vocabulary = VOCABULARIES[language];
  const owner = draws.pick(owners);
  if (session === "mcp") return `${draws.pick(AGENTS)} (${owner})`;
  if (session === "api") return `${draws.pick(jobs)} ${String(1 + draws.below(24)).padStart(2, "0")}`;
  const thing = draws.pick(things);
  return genitive === undefined ? `${thing} – ${owner}` : owner + genitive + thing;
}

/** Titles of pools. */
export const POOL_TITLES = [
  "Production agents",
  "Staging",
  "客户支持",
  "Équipe données",
  "Партнёры",
  "Field devices 📡",
];

/** Titles of domains. */
export const DOMAIN_TITLES = ["agents.example.com", "Example GmbH – München", "例子有限公司", "Пример", "مثال للتجارة"];
