// The page works without this script. It adds the time zone of the reader.
"use strict";
for (const t of document.querySelectorAll("time[datetime]")) {
  t.title = new Date(t.dateTime).toLocaleString();
}
