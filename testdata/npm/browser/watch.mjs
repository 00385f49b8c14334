// watch notes in a report what a page asks for, what of it is another origin's, and what
// goes wrong on the page.
export async function watch(page, origin, report) {
  const entries = new Map();
  const note = (url) => {
    const u = new URL(url);
    if (u.origin !== origin && !['data:', 'blob:', 'about:'].includes(u.protocol)) {
      report.foreign.push(url);
    }
  };
  page.on('request', (r) => {
    const entry = { method: r.method(), url: r.url(), status: 0 };
    entries.set(r, entry);
    report.requests.push(entry);
    note(r.url());
  });
  page.on('response', (r) => {
    entries.get(r.request()).status = r.status();
  });
  page.on('websocket', (s) => note(s.url().replace(/^ws/, 'http')));
  page.on('requestfailed', (r) => report.faults.push(`request: ${r.method()} ${r.url()}: ${r.failure().errorText}`));
  page.on('pageerror', (e) => report.faults.push(`exception: ${e.message}`));
  page.on('console', (m) => {
    if (m.type() === 'error' || m.type() === 'warning') {
      report.faults.push(`console: ${m.text()}`);
    }
  });
  await page.exposeFunction('reportFault', (fault) => report.faults.push(fault));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (e) => {
      window.reportFault(`policy: ${e.effectiveDirective} refused ${e.blockedURI} (${e.sourceFile}:${e.lineNumber})`);
    });
  });
}
