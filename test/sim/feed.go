package sim

import (
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/oracle"
)

// article is an item of the feed that a page has.
type article struct {
	id          int
	title, text string
}

// articleIDs is how many identities the articles of a page have. They are few, so that articles come back.
const articleIDs = 12

func newArticle(r *rand.Rand) article {
	return article{r.IntN(articleIDs), randomPhrase(r, 2+r.IntN(4)), randomParagraph(r)}
}

// putArticle puts an article in front, in place of one with its identity.
func (p *pageRevision) putArticle(a article) {
	p.feed = slices.DeleteFunc(p.feed, func(b article) bool { return b.id == a.id })
	p.feed = slices.Insert(p.feed, 0, a)
}

// editFeed changes the feed of p, which always has an article.
func (p *pageRevision) editFeed(r *rand.Rand) {
	at := r.IntN(len(p.feed))
	switch r.IntN(8) {
	case 0, 1:
		p.putArticle(newArticle(r))
	case 2, 3: // one that leaves
		if len(p.feed) > 1 {
			p.goneArticles = append(p.goneArticles, p.feed[at])
			p.feed = slices.Delete(p.feed, at, at+1)
		}
	case 4, 5: // one that comes back
		if len(p.goneArticles) > 0 {
			p.putArticle(pick(r, p.goneArticles))
		}
	case 6: // one that moves
		a := p.feed[at]
		p.feed = slices.Delete(p.feed, at, at+1)
		p.feed = slices.Insert(p.feed, r.IntN(len(p.feed)+1), a)
	default:
		p.feed[at].text = editWords(r, p.feed[at].text)
	}
}

// renderFeed returns the text of a document that is the articles of a feed; ok is false where there are none.
func renderFeed(articles []article) (d renderedText, ok bool) {
	var b []byte
	for i, a := range articles {
		b = append(b, pipeline.ItemStart)
		for _, s := range []string{a.title, a.text} {
			d.page = append(d.page, oracle.Block{Text: s, Offset: len(b), Items: []int{i + 1}})
			b = append(append(b, s...), pipeline.BlockEnd)
		}
		b = append(b, pipeline.ItemEnd)
	}
	d.content, d.feed = string(b), articles
	return d, len(articles) > 0
}

// itemKeys are the keys of the articles, as fetch makes them of their identities.
func (d renderedText) itemKeys() (keys []string) {
	for _, a := range d.feed {
		keys = append(keys, base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(a.id))))
	}
	return keys
}

// comparedWith returns what text, a feed, is compared with after the versions of l: its articles as they were,
// without those that are new. One that left and came back is no change where it is as it was when it left, and is all
// new where it is not. news says that text is a version: an article was not there before, or is not as it was.
func (l *documentLife) comparedWith(text renderedText) (with renderedText, news bool) {
	var kept []article
	for _, a := range text.feed {
		before, last := l.lastArticle(a.id)
		if before != a || !last {
			news = true
		}
		if before == a || last {
			kept = append(kept, before)
		}
	}
	with, _ = renderFeed(kept)
	return with, news
}

// lastArticle returns an article as the last version that has it does; last says that this is the last version of all.
func (l *documentLife) lastArticle(id int) (a article, last bool) {
	for i, v := range slices.Backward(l.versions) {
		for _, a := range v.text.feed {
			if a.id == id {
				return a, i == len(l.versions)-1
			}
		}
	}
	return article{id: -1}, false
}

// isIgnored reports whether text makes no version although it differs from the last one.
func (l *documentLife) isIgnored(text renderedText) bool {
	if l.isFlipFlop(text.visibleText()) {
		return true
	}
	_, news := l.comparedWith(text)
	return len(text.feed) > 0 && !news
}

// previousText returns what the version with index i of l is compared with.
func (l *documentLife) previousText(i int) renderedText {
	if l.view.Items {
		return l.versions[i].comparedWith
	}
	return l.versions[i-1].text
}
