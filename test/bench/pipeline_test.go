package bench_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/klauspost/compress/zstd"
	"github.com/sergi/go-diff/diffmatchpatch"
	"golang.org/x/net/html"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// TestMain discards the records of Routers, since those in the lines of benchmarks make them unreadable.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// loopback permits what is served on this machine.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// everyTime checks again at once.
var everyTime time.Duration

// article is an HTML page of about 80 KB with 20 KB of text in paragraphs and lists,
// with markup around it as real pages have.
func article(seed uint64) []string {
	dice := rand.New(rand.NewPCG(seed, 0))
	vocabulary := make([]string, 4000)
	for i := range vocabulary {
		b := make([]byte, 3+dice.IntN(7))
		for j := range b {
			b[j] = byte('a' + dice.IntN(26))
		}
		vocabulary[i] = string(b)
	}
	zipf := rand.NewZipf(dice, 1.2, 8, uint64(len(vocabulary)-1))
	words := make([]string, 3000)
	for i := range words {
		words[i] = vocabulary[zipf.Uint64()]
	}
	return words
}

// page lays words out as HTML.
func page(words []string) []byte {
	var b bytes.Buffer
	b.WriteString("<!doctype html><html lang=en><head><title>A page</title></head><body>")
	for i := 0; i < len(words); i += 30 {
		fmt.Fprintf(&b, `<div class="wrapper outer-%d" data-component="paragraph" data-id="%08x"><p class="text body-large" style="margin: 0 auto">`, i, i*7919)
		for j, w := range words[i:min(i+30, len(words))] {
			if j%10 == 5 {
				fmt.Fprintf(&b, `<a href="https://example.com/section/%d/topic/%s?ref=inline" class="link link--inline" rel="noopener">%s</a> `, i, w, w)
			} else {
				b.WriteString(w + " ")
			}
		}
		b.WriteString("</p></div>\n<!-- a comment as templates leave them behind, with no meaning to anybody -->\n")
		fmt.Fprintf(&b, "<script>window.dataLayer = window.dataLayer || []; dataLayer.push({event: 'view', id: %d, section: 'body'});</script>\n", i)
	}
	b.WriteString("</body></html>")
	return b.Bytes()
}

// edited returns words with one percent of them replaced.
func edited(words []string, seed uint64) []string {
	dice := rand.New(rand.NewPCG(seed, 1))
	out := append([]string(nil), words...)
	for range len(words) / 100 {
		out[dice.IntN(len(out))] = fmt.Sprintf("edited%d", dice.IntN(1000))
	}
	return out
}

// rotatingFetcher is a Fetcher that serves its bodies in turn, without a network.
type rotatingFetcher struct {
	bodies [][]byte
	n      atomic.Int64
}

func (t *rotatingFetcher) Schemes() []string { return []string{"bench"} }

func (t *rotatingFetcher) Fetch(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
	body := t.bodies[int(t.n.Add(1)-1)%len(t.bodies)]
	return pipeline.Response{
		URL: "bench://host/page", Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// BenchmarkPipeline takes a page of 80 KB, of which one percent of the words change at
// every check, through read, index, diff, match and commit; beside it the primitives
// that no implementation can do without.
func BenchmarkPipeline(b *testing.B) {
	words := article(1)
	bodies := [][]byte{page(words), page(edited(words, 2))}
	for _, durable := range []bool{false, true} {
		b.Run(map[bool]string{false: "memory", true: "durable"}[durable], func(b *testing.B) {
			cfg := vokter.Config{
				Fetchers: []pipeline.Fetcher{&rotatingFetcher{bodies: bodies}},
				Sinks:    map[string]pipeline.Sink{"none": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })},
				Subscriptions: []pipeline.Subscription{{
					URL: "bench://host/page", Keywords: []string{"edited1", "nothing of this"}, Sinks: []string{"none"},
				}},
				Fetch:  vokter.FetchConfig{Concurrency: 8, Rate: 1e9},
				Checks: b.N, Every: &everyTime,
			}
			if durable {
				cfg.Dir = b.TempDir()
			}
			runOnce(b, cfg)
		})
	}
	b.Run("primitives", func(b *testing.B) { primitives(b, bodies) })
}

func runOnce(b *testing.B, cfg vokter.Config) inspect.Summary {
	b.Helper()
	r, err := vokter.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if err := r.Run(context.Background()); err != nil {
		b.Fatal(err)
	}
	return r.Summary()
}

// primitives does the bare work of one changed check: a tokenizer pass, the hashes, a
// diff of the words, packing and unpacking the texts, and a write.
func primitives(b *testing.B, bodies [][]byte) {
	db, err := pebble.Open(b.TempDir(), &pebble.Options{Logger: quietLogger{}})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	enc, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	dec, _ := zstd.NewReader(nil)
	dmp := diffmatchpatch.New()
	dmp.DiffTimeout = 0
	before := ""
	var packed []byte
	b.ResetTimer()
	for i := range b.N {
		body := bodies[i%len(bodies)]
		sum := sha256.Sum256(body)
		var sb strings.Builder
		z := html.NewTokenizer(bytes.NewReader(body))
		for skip := false; ; {
			switch z.Next() {
			case html.TextToken:
				if !skip {
					sb.Write(z.Text())
				}
				continue
			case html.StartTagToken, html.EndTagToken:
				name, _ := z.TagName()
				skip = string(name) == "script" && !skip
				sb.WriteByte('\n')
				continue
			case html.ErrorToken:
			default:
				continue
			}
			break
		}
		after := sb.String()
		textSum := sha256.Sum256([]byte(after))
		if packed != nil {
			old, err := dec.DecodeAll(packed, nil)
			if err != nil {
				b.Fatal(err)
			}
			before = string(old)
		}
		ids := map[string]rune{}
		dmp.DiffMainRunes(runes(before, ids), runes(after, ids), false)
		packed = enc.EncodeAll([]byte(after), nil)
		batch := db.NewBatch()
		batch.Set(sum[:], packed, nil)
		batch.Set(textSum[:], []byte(hex.EncodeToString(textSum[:])), nil)
		if err := batch.Commit(pebble.NoSync); err != nil {
			b.Fatal(err)
		}
	}
}

// runes maps the words of s to runes.
func runes(s string, ids map[string]rune) []rune {
	var rs []rune
	for _, t := range text.Tokens(s) {
		w := s[t.Start:t.End]
		id, ok := ids[w]
		if !ok {
			id = rune(0x4E00 + len(ids))
			ids[w] = id
		}
		rs = append(rs, id)
	}
	return rs
}

type quietLogger struct{}

func (quietLogger) Infof(string, ...any)  {}
func (quietLogger) Errorf(string, ...any) {}
func (quietLogger) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
