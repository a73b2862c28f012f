// All pages work without this script. It writes times in the time zone of the reader, goes on with a
// search, and says that there are new changes.
"use strict";

for (const t of document.querySelectorAll("time[datetime]")) {
  if (!("day" in t.dataset)) t.title = new Date(t.dateTime).toLocaleString();
}

// A list without a match so far goes on with the pages that were not looked through yet.
const further = document.querySelector("a[data-further]");
if (further) location.replace(further.href);

// The title of the tab counts the changes that somebody is told of while the page is open.
const live = document.getElementById("live");
if (live && window.EventSource && !location.search.includes("cursor=")) {
  const told = new Set();
  new EventSource(new URL("../events?type=notification", document.currentScript.src)).addEventListener("notification", (event) => {
    const { page, document: part, notification } = JSON.parse(event.data);
    if (notification.status !== "ok" || !notification.version) return;
    told.add(page + " " + part + " " + notification.version);
    const show = live.querySelector("a");
    show.textContent = told.size === 1 ? "1 new change" : told.size + " new changes";
    live.hidden = false;
    document.title = "(" + told.size + ") " + document.title.replace(/^\(\d+\) /, "");
  });
}

// A click on a part of the watched page does what the link in front of the part does. Nothing of that
// page runs: this script only listens.
const frame = document.querySelector("iframe.picker");
if (frame) {
  const listen = () => {
    frame.contentDocument?.addEventListener("click", (event) => {
      for (let part = event.target; part; part = part.parentElement) {
        const link = part.matches(".pick") ? part : part.querySelector(":scope > .pick");
        if (link) {
          event.preventDefault();
          location.href = link.getAttribute("href");
          return;
        }
      }
    });
  };
  frame.addEventListener("load", listen);
  if (frame.contentDocument?.readyState === "complete") listen();
}
