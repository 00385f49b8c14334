// Has a page in headless Chromium read an answer of server-sent events by fetch, and act
// on each while the answer is still on its way. Prints what it saw as one JSON object.
//
// It reads one JSON object from standard input:
//
//   chromium   path of the browser
//   page       the address of the page
//   call       {url, method, headers, body}: the request whose answer is a stream
//   then       [{event, url, method, headers, body}]: a request that is made when the first event of
//              that type has come; {job} in the url stands for the event's job
//
// What it prints is {status, type, events: [{type, data}], again}: again is the status of
// a plain request for the page itself, afterwards.
import { text } from 'node:stream/consumers';
import { chromium } from 'playwright-core';

const ask = JSON.parse(await text(process.stdin));

const browser = await chromium.launch({
  executablePath: ask.chromium,
  args: ['--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1'],
});
let report;
try {
  const page = await browser.newPage();
  await page.goto(ask.page);
  report = await page.evaluate(async ({ call, then }) => {
    const { url, ...options } = call;
    const r = await fetch(url, options);
    const events = [];
    const waiting = [...then];
    let rest = '';
    for await (const piece of r.body.pipeThrough(new TextDecoderStream())) {
      const blocks = (rest + piece).split('\n\n');
      rest = blocks.pop();
      for (const block of blocks) {
        const lines = block.split('\n');
        const of = (name) => lines.filter((l) => l.startsWith(name + ': ')).map((l) => l.slice(name.length + 2)).join('\n');
        const type = of('event');
        if (!type) continue;
        const data = of('data');
        events.push({ type, data });
        const i = waiting.findIndex((w) => w.event === type);
        if (i >= 0) {
          const [{ event, url, ...options }] = waiting.splice(i, 1);
          const answer = await fetch(url.replace('{job}', JSON.parse(data).job), options);
          await answer.text();
          events.push({ type: 'then ' + event, data: String(answer.status) });
        }
      }
    }
    const again = await fetch(location.href);
    return { status: r.status, type: r.headers.get('content-type'), events, again: again.status };
  }, ask);
} finally {
  await browser.close();
}
console.log(JSON.stringify(report));
