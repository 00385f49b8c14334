// Lets headless Chromium come across a page that it should not run, in every way that a
// page of the same origin or a person could, and prints what it asked for as one
// JSON object.
//
// It reads one JSON object from standard input:
//
//   chromium   path of the browser
//   page       a page to put the suspect into
//   suspect    the address of the suspect
//   settle     milliseconds in which its script could have run (1000)
//
// What it prints is {requests: [every URL asked for], downloads: [URLs that became files]}.
import { text } from 'node:stream/consumers';
import { chromium } from 'playwright-core';

const ask = JSON.parse(await text(process.stdin));
const settle = ask.settle ?? 1000;
const report = { requests: [], downloads: [] };

const browser = await chromium.launch({
  executablePath: ask.chromium,
  args: [`--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE ${new URL(ask.page).hostname}`],
});
try {
  const context = await browser.newContext();
  context.on('request', (r) => report.requests.push(r.url()));
  const page = await context.newPage();
  page.on('download', (d) => report.downloads.push(d.url()));

  // A person who follows the link; a download makes goto fail, and that is well.
  await page.goto(ask.suspect).catch(() => {});
  await page.waitForTimeout(settle);

  // A page of ours that shows it.
  await page.goto(ask.page);
  await page.evaluate((src) => {
    for (const [tag, attribute] of [['iframe', 'src'], ['embed', 'src'], ['object', 'data'], ['img', 'src'], ['script', 'src']]) {
      const e = document.createElement(tag);
      e.setAttribute(attribute, src);
      document.body.append(e);
    }
  }, ask.suspect);
  await page.waitForTimeout(settle);
} finally {
  await browser.close();
}
console.log(JSON.stringify(report));
