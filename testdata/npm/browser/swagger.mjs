// Opens a Swagger UI page in headless Chromium, tries operations on it as a person
// would, and prints what it saw as one JSON object.
//
// It reads one JSON object from standard input:
//
//   chromium     path of the browser
//   url          the page
//   calls        [{operation, body}] to try one after the other: an operationId, and the
//                text for the request body, without which the example stays
//   keys         credentials to give, one after the other, where the page asks for one first
//   authorize    a credential to give in the dialog behind "Authorize"
//   screenshot   path of a PNG to write at the end
//   colorScheme  "light" (the default) or "dark"
//   timeout      milliseconds that each step may take (60000)
//
// What it prints is the type Report of internal/web/webtest. It fails (exit
// status 1, the reason on standard error) only when it cannot do what is asked;
// whatever is wrong with the page is in the report, for the test to judge.
import { text } from 'node:stream/consumers';
import { chromium } from 'playwright-core';

import { watch } from './watch.mjs';

const ask = JSON.parse(await text(process.stdin));
const timeout = ask.timeout ?? 60_000;
const origin = new URL(ask.url).origin;

const report = {
  title: '', // of the tab
  heading: '', // title of the document shown
  operations: [], // operationIds on the page, with all tags open
  requests: [], // {method, url, status}, in the order of their start; status 0: no answer
  foreign: [], // addresses of requests that went, or tried to go, to another origin
  faults: [], // console errors, exceptions, failed requests, breaches of the page's policy
  answers: [], // {method, url, headers, body, status, shown}, one for each call
};

// Nothing but the page's host resolves, so that a fault of the page cannot reach
// the network even when it is what the test is about to find.
const browser = await chromium.launch({
  executablePath: ask.chromium,
  args: [`--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE ${new URL(ask.url).hostname}`],
});
try {
  const page = await browser.newPage({ colorScheme: ask.colorScheme ?? 'light', viewport: { width: 1200, height: 1000 } });
  page.setDefaultTimeout(timeout);
  await watch(page, origin, report);
  try {
    await drive(page);
  } catch (e) {
    // Why a step did not come about is most often in the report so far.
    console.error(JSON.stringify(report, null, 1));
    throw e;
  } finally {
    if (ask.screenshot) {
      await page.screenshot({ path: ask.screenshot, fullPage: true });
    }
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(report));

async function drive(page) {
  await page.goto(ask.url);
  for (const [i, key] of (ask.keys ?? []).entries()) {
    await page.locator('#key label', { hasText: i > 0 ? 'not right' : 'needs' }).locator('input').fill(key);
    await page.locator('#key button').click();
  }
  const heading = page.locator('.info .title').first();
  await heading.waitFor();
  report.title = await page.title();
  // The heading also holds the version, in elements of its own.
  report.heading = await heading.evaluate((e) => e.firstChild.textContent.trim());

  const closed = page.locator('.opblock-tag[data-is-open="false"]');
  while ((await closed.count()) > 0) {
    await closed.first().click();
  }
  const blocks = page.locator('.opblock');
  await blocks.first().waitFor();
  report.operations = await blocks.evaluateAll((list) =>
    list.map((e) => decodeURIComponent(e.id.slice(`operations-${e.closest('.opblock-tag-section').querySelector('.opblock-tag').dataset.tag}-`.length))),
  );

  if (ask.authorize) {
    await authorize(page);
  }
  for (const call of ask.calls ?? []) {
    const i = report.operations.indexOf(call.operation);
    if (i < 0) {
      throw new Error(`no operation ${call.operation} on the page, but ${report.operations.join(', ')}`);
    }
    report.answers.push(await execute(page, blocks.nth(i), call.body));
  }
}

async function authorize(page) {
  await page.locator('.btn.authorize').first().click();
  await page.locator('.auth-container input').first().fill(ask.authorize);
  await page.locator('.auth-container .btn.authorize').first().click();
  await page.locator('.auth-container .btn-done').first().click();
}

async function execute(page, block, body) {
  if (!(await block.evaluate((e) => e.classList.contains('is-open')))) {
    await block.locator('.opblock-summary-control').first().click();
  }
  // What an earlier call left would pass for this one's answer.
  const clear = block.locator('button.btn-clear');
  if ((await clear.count()) > 0) {
    await clear.click();
  }
  if (body !== undefined) {
    await block.locator('textarea.body-param__text').fill(body);
  }
  const sent = page.waitForRequest((r) => r.resourceType() === 'fetch');
  await block.locator('button.execute').click();
  const request = await sent;
  const shown = block.locator('.live-responses-table .response').first();
  await shown.waitFor();
  return {
    method: request.method(),
    url: request.url(),
    headers: await request.allHeaders(),
    body: request.postData() ?? '',
    status: Number((await shown.locator('.response-col_status').innerText()).split(/\s/)[0]),
    shown: await shown.locator('.highlight-code pre, .microlight, img').first().textContent(),
  };
}
