// Lets pages in headless Chromium make requests by fetch, and prints what each page
// could see of the answers as one JSON object.
//
// It reads one JSON object from standard input:
//
//   chromium   path of the browser
//   visits     [{page, requests}]: the address of a page, and what it asks for,
//              [{url, method, headers, body, mode}], one after the other
//
// What it prints is {visits: [[answer]]}, in the same order: {status, type, headers, body}
// as the page sees them, or {error} where the browser lets it see nothing.
import { text } from 'node:stream/consumers';
import { chromium } from 'playwright-core';

const ask = JSON.parse(await text(process.stdin));
const report = { visits: [] };

const browser = await chromium.launch({
  executablePath: ask.chromium,
  args: ['--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1'],
});
try {
  for (const { page: url, requests } of ask.visits) {
    const page = await browser.newPage();
    await page.goto(url);
    report.visits.push(
      await page.evaluate(async (list) => {
        const answers = [];
        for (const { url, ...options } of list) {
          try {
            const r = await fetch(url, options);
            answers.push({ status: r.status, type: r.type, headers: Object.fromEntries(r.headers), body: await r.text() });
          } catch (e) {
            answers.push({ error: String(e) });
          }
        }
        return answers;
      }, requests),
    );
    await page.close();
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(report));
