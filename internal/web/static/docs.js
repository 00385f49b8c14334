// Starts Swagger UI on the page that loads it. It stands in a file because the
// page's content security policy runs no inline script; what differs from page
// to page is in the data attributes of its root element.
'use strict';

(() => {
  const root = document.getElementById('swagger-ui');

  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', follow);
  follow();

  SwaggerUIBundle({
    domNode: root,
    url: new URL(root.dataset.document, document.baseURI).href,
    // A link to this page must not choose another document or configuration.
    queryConfigEnabled: false,
    validatorUrl: null, // would send the document's address to a stranger
    deepLinking: true,
    filter: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    // With thousands of tools, what is closed is not rendered.
    docExpansion: 'none',
    defaultModelsExpandDepth: 0,
    // Keys stay in this page's memory. On a loopback address the browser's
    // storage outlives the bridge and is shared with whatever listens there next.
    persistAuthorization: false,
  });
})();
