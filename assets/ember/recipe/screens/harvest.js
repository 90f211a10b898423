// Runs inside the page: the visible elements, each with its words and its box in CSS pixels.
const seen = [], W = innerWidth, H = innerHeight;
const pick = 'a[href],button,input,select,textarea,summary,[role=button],[role=tab],[role=menuitem],[role=checkbox],[role=switch],'
  + '[role=link],[role=option],[role=treeitem],[role=radio],h1,h2,h3,h4,th,[data-k]';
const words = t => (t || '').replace(/\s+/g, ' ').trim();
for (const e of document.querySelectorAll(pick)) {
  const s = getComputedStyle(e);
  if (s.visibility !== 'visible' || +s.opacity < 0.3 || s.display === 'none') continue;
  const all = [...e.getClientRects()].filter(r => r.width > 2 && r.height > 2);
  if (!all.length) continue;
  let r = all[0];
  if (all.length > 1 && e.tagName === 'A' && !e.dataset.k) continue;
  if (all.length > 1) r = e.getBoundingClientRect();
  if (r.left < 0 || r.top < 0 || r.right > W || r.bottom > H) continue;
  const at = document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2);
  if (!at || !(e.contains(at) || at.contains(e) && at.tagName === 'LABEL')) continue;
  let label = e.labels && e.labels[0] ? words(e.labels[0].innerText) : '';
  const by = e.getAttribute('aria-labelledby');
  const named = by && document.getElementById(by) ? words(document.getElementById(by).innerText) : '';
  seen.push({tag: e.tagName.toLowerCase(), role: e.getAttribute('role') || '', type: e.type || '', k: e.dataset.k || '',
    text: words(e.tagName === 'SELECT' || e.tagName === 'TEXTAREA' ? '' : e.innerText), value: e.tagName === 'INPUT' && /submit|button|reset/.test(e.type) ? e.value : '',
    aria: words(e.getAttribute('aria-label') || named), title: words(e.getAttribute('title')), hint: words(e.getAttribute('placeholder')),
    alt: words((e.querySelector('img[alt]') || {}).alt), label: label, box: [r.left, r.top, r.right, r.bottom]});
}
return seen;
