// Fills the list of versions, and opens the first page of the version that a reader chooses.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("versions");
  for (const version of window.kstreamsVersions ?? []) {
    if (version !== list.dataset.version) list.add(new Option(version));
  }
  list.addEventListener("change", () => {
    location.href = `${list.dataset.site}${list.value}/index.html`;
  });
});
