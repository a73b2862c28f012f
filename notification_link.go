package vokter

import (
	"net/url"
	"strconv"

	"github.com/vokter/vokter/pipeline"
)

// notificationLink returns the address of the web page about a notification of a document, or "" where there is
// none.
func (r *Router) notificationLink(document string, n pipeline.Notification) string {
	base := r.liveConfig.Load().PublicURL
	to := func(path string, pairs ...string) string {
		q := make(url.Values)
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] != "" {
				q.Set(pairs[i], pairs[i+1])
			}
		}
		return base + path + "?" + q.Encode()
	}
	switch {
	case base == "" || n.Type == pipeline.NotificationTypeTest || n.Type == pipeline.NotificationTypeChange:
		return ""
	case n.Health != nil && n.Health.URL == "":
		return ""
	case n.Health != nil:
		return to("/page", "url", n.Health.URL)
	case n.URL == "": // of several pages
		return base + "/changes"
	case n.Type == pipeline.NotificationTypeDigest || n.Version == 0:
		return to("/page", "url", n.URL, "document", document)
	}
	return to("/diff", "url", n.URL, "document", document, "to", strconv.FormatUint(n.Version, 10))
}
