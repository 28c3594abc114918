/** The whole style of the page: its policy allows this text and no other. */
export const REPORT_STYLE = `
:root{color-scheme:light dark;--bg:#f5f6f8;--card:#fff;--ink:#15181e;--dim:#5a6372;--line:#e3e6ec;--warn:#9a4a00;
--warn-bg:#fff4e5;--warn-line:#f0cf9f;--bar:#2456d6}
@media screen and (prefers-color-scheme:dark){:root{--bg:#0e1116;--card:#171b22;--ink:#e9ecf2;--dim:#9aa4b4;--line:#2a313c;
--warn:#ffb866;--warn-bg:#2b2114;--warn-line:#5a431f;--bar:#82a6ff}}
@media print{:root{color-scheme:light;--bg:#fff;--ink:#000;--dim:#444;--line:#ccc;--warn:#7a3a00;--warn-bg:#fff;--warn-line:#999}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
header,main,footer{max-width:72rem;margin:0 auto;padding:0 1.5rem}
header{padding-top:3rem}
h1{margin:0;font-size:1.9rem;line-height:1.2;letter-spacing:-.02em;overflow-wrap:anywhere}
h2{margin:3rem 0 1rem;font-size:1.25rem;line-height:1.3;letter-spacing:-.01em}
h3{margin:0;font-size:1rem;line-height:1.35}
p{margin:0}
code{font:.875em ui-monospace,SFMono-Regular,Menlo,monospace;overflow-wrap:anywhere}
.over{color:var(--dim);font-size:.875rem;margin-bottom:.35rem}
.sub,.notes,footer,.about,small{color:var(--dim)}
.sub{margin-top:.5rem}
.notes{margin:.75rem 0 0;padding-left:1.1rem;font-size:.9rem}
.incomplete{margin-top:1.25rem;padding:.8rem 1rem;border:1px solid var(--warn-line);border-radius:12px;background:var(--warn-bg);
color:var(--warn);font-weight:600}
.tiles{display:grid;grid-template-columns:repeat(6,minmax(0,1fr));gap:1rem;margin:2rem 0 0}
.tiles>div,.card{background:var(--card);border:1px solid var(--line);border-radius:14px}
.tiles>div{padding:1rem 1.15rem;display:flex;flex-direction:column}
.tiles dt{font-size:.85rem;color:var(--dim)}
.tiles dd{margin:0;font-size:1.75rem;font-weight:650;line-height:1.25;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.tiles small{font-size:.8rem}
.card{padding:1.35rem 1.5rem;min-width:0}
.card>.about{font-size:.9rem;margin-top:.15rem}
.two{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:1rem}
.found{display:flex;flex-direction:column;gap:.45rem}
.found .count{font-size:1.75rem;font-weight:650;line-height:1.1;letter-spacing:-.02em;color:var(--warn);font-variant-numeric:tabular-nums}
.found p{font-size:.93rem}
.found .of{color:var(--dim);font-size:.85rem}
.clear{margin-top:1rem;color:var(--dim);font-size:.93rem}
.clear ul{margin:.25rem 0 0;padding-left:1.1rem}
details{margin-top:.35rem;font-size:.9rem}
summary{cursor:pointer;color:var(--bar)}
summary:focus-visible{outline:2px solid var(--bar);outline-offset:3px;border-radius:4px}
table{width:100%;border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.32rem .5rem;text-align:left;font-weight:400;vertical-align:baseline;overflow-wrap:anywhere}
th:first-child,td:first-child{padding-left:0}
th:last-child,td:last-child{padding-right:0}
thead th{font-size:.8rem;color:var(--dim);overflow-wrap:normal;vertical-align:bottom}
thead>tr>*{border-bottom:1px solid var(--line)}
tbody tr+tr>*{border-top:1px solid var(--line)}
.bars{table-layout:fixed;margin-top:.6rem}
.bars td:nth-child(2){width:34%;vertical-align:middle}
.bars td:nth-child(2) svg{display:block;width:100%;height:.5rem}
.bars .n,.bars thead th:nth-child(n+3){width:4.4rem;text-align:right}
.n{white-space:nowrap}
.rest th,.rest td{color:var(--dim)}
.bar{fill:var(--bar)}
footer{padding-top:2.5rem;padding-bottom:3.5rem;font-size:.85rem}
@media (max-width:64rem){.tiles{grid-template-columns:repeat(3,minmax(0,1fr))}}
@media (max-width:46rem){.two{grid-template-columns:minmax(0,1fr)}
header,main,footer{padding-left:1rem;padding-right:1rem}header{padding-top:1.75rem}h1{font-size:1.5rem}h2{margin-top:2.25rem}
.card{padding:1.1rem}.tiles{gap:.6rem;grid-template-columns:repeat(2,minmax(0,1fr))}.tiles>div{padding:.8rem .95rem}.tiles dd{font-size:1.5rem}
.bars td:nth-child(2){width:22%}.bars .n,.bars thead th:nth-child(n+3){width:4.1rem}
.bars thead th:nth-child(4),.bars .n:nth-child(4){width:3.1rem}}
@media print{body{font-size:11pt}.tiles{grid-template-columns:repeat(3,minmax(0,1fr))}header,main,footer{max-width:none;padding-left:0;padding-right:0}header{padding-top:0}
.card,.tiles>div,tr{break-inside:avoid}h2,h3{break-after:avoid}h2{margin-top:1.5rem}summary{color:var(--dim)}
.examples::details-content{content-visibility:visible}@page{margin:1.6cm}}
`;
