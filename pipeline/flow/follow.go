package flow

import (
	"time"

	"github.com/vokter/vokter/pipeline"
)

// OriginFollow is the origin of subscriptions to pages that are watched because other pages link to
// them.
const OriginFollow = "follow"

// Links are the links of a page.
type Links struct {
	// At is the URL of the page after redirects.
	At string `json:"at"`
	// URLs are the canonical URLs of the linked pages, http or https, or file if the page is a file, each once, in the
	// order of the document. They are at most MaxLinks, of MaxLinksSize bytes in all, and those of a sitemap at most
	// MaxSitemapLinks, of MaxSitemapLinksSize bytes in all.
	URLs []string `json:"urls,omitempty"`
	// Modified says when the pages of URLs were last modified, as a sitemap says it (lastmod): seconds
	// since 1970, or 0 where it does not say. It is as long as URLs, or empty.
	Modified []int64 `json:"modified,omitempty"`
	// More says that the page has more links than that.
	More bool `json:"more,omitempty"`
	// Index says that the page is a sitemap index: URLs are sitemaps.
	Index bool `json:"index,omitempty"`
}

// Bounds of Links.
const (
	MaxLinks     = 2000
	MaxLinksSize = 256 << 10

	MaxSitemapLinks     = 50_000
	MaxSitemapLinksSize = 4 << 20 // as JSON, which writes an ampersand in six bytes
)

// Followed says why a page is watched that no client named.
type Followed struct {
	// Root is the page whose subscription follows links. ID identifies that subscription; see
	// FollowID.
	Root string `json:"root"`
	ID   string `json:"id"`
	// Links says that Root wants to know the links of the page.
	Links bool `json:"links,omitempty"`
}

// FollowID returns the ID of a subscription that follows links: that of client to a document of the
// page root.
func FollowID(root, document, client string) string {
	return DeriveID("follow", root, document, client)
}

// FollowCommand says that the page of URL is watched because other pages link to it, or that it is
// no longer watched for that reason. Only the owner of Root sends it.
type FollowCommand struct {
	URL string `json:"url"`
	Followed
	// Subscription is the subscription that follows links, but with the URL of this page, and without
	// Follow unless this page is a sitemap. It is empty with End.
	Subscription pipeline.Subscription `json:"subscription"`
	// End ends the subscription that an earlier command began.
	End bool `json:"end,omitempty"`
	// Kept says that notifications of earlier changes are still delivered after the End, because the
	// subscription that follows links was paused or expired, and not cancelled.
	Kept bool `json:"kept,omitempty"`
}

// Message returns c as a message on TopicDocuments with the time at. Cause is the ID of the message
// that it follows from.
func (c FollowCommand) Message(cause string, at time.Time) Message {
	return Message{
		ID:    DeriveID("follow", cause, c.ID, c.URL),
		Topic: TopicDocuments, Key: c.URL, Type: TypeFollow, Subject: c.URL, Time: at,
		Header: map[string]string{headerContent: "application/json"}, Body: encode(c),
	}
}

// FollowCommandFrom is the inverse of FollowCommand.Message.
func FollowCommandFrom(m Message) (FollowCommand, error) {
	return decode[FollowCommand](m, "command")
}

// ModifiedMessage asks for a check of page unless one was made at modified or later. Cause is the ID of
// the message that it follows from, and at its time.
func ModifiedMessage(page string, modified time.Time, cause string, at time.Time) Message {
	return Message{
		ID:    DeriveID("modified", cause, page),
		Topic: TopicDocuments, Key: page, Type: TypeCheckNow, Subject: page, Time: at,
		Header: map[string]string{headerContent: "application/json"}, Body: encode(CheckNow{After: modified}),
	}
}

// CheckNow is the body of a message of TypeCheckNow, which may have none.
type CheckNow struct {
	// After is the time at or after which a check makes this one needless; zero if none does.
	After time.Time `json:"after,omitzero"`
}

// CheckNowFrom returns the body of m, or the zero CheckNow if it has none.
func CheckNowFrom(m Message) (CheckNow, error) {
	if len(m.Body) == 0 {
		return CheckNow{}, nil
	}
	return decode[CheckNow](m, "command")
}

// LinksFound reports the links of Page to the page Root, which follows links to it, or is it.
type LinksFound struct {
	Root string `json:"root"`
	Page string `json:"page"`
	Links
}

// Message returns l as a message on TopicDocuments with the time at. Cause is the ID of the message
// that it follows from.
func (l LinksFound) Message(cause string, at time.Time) Message {
	return Message{
		ID:    DeriveID("links", cause, l.Root, l.Page),
		Topic: TopicDocuments, Key: l.Root, Type: TypeLinks, Subject: l.Page, Time: at,
		Header: map[string]string{headerContent: "application/json"}, Body: encode(l),
	}
}

// LinksFoundFrom is the inverse of LinksFound.Message.
func LinksFoundFrom(m Message) (LinksFound, error) {
	return decode[LinksFound](m, "links")
}
