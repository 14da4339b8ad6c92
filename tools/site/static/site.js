// Fills the list of versions, opens the first page of the version that a reader chooses, and lets keys scroll wide code.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("versions");
  for (const version of window.kstreamsVersions ?? []) {
    if (version !== list.dataset.version) list.add(new Option(version));
  }
  list.addEventListener("change", () => {
    location.href = `${list.dataset.site}${list.value}/index.html`;
  });
  for (const code of document.querySelectorAll(".highlight pre")) {
    if (code.scrollWidth > code.clientWidth) code.tabIndex = 0;
  }
});
