package cli

import (
	"fmt"
	"html/template"
	"net/http"
	"sync"
)

// demoKeywords are what the demo watches for.
var demoKeywords = []string{"in stock", "sold out", "half price", "free delivery", "last one"}

// scene is what the shop of the demo says at one moment.
type scene struct {
	Stock, Price, Delivery, Visitor string
}

// beforeAndAfter shows what the page said before the version and what it says since, line by line
// where they differ.
func beforeAndAfter(version uint64) string {
	at := func(v uint64) [4]string {
		s := scenes[int(v-1)%len(scenes)]
		return [4]string{s.Stock, "Price: " + s.Price, s.Delivery, s.Visitor}
	}
	before, after := at(version-1), at(version)
	was, is := "", ""
	for i := range before {
		if before[i] != after[i] {
			was += fmt.Sprintf("    %s\n", before[i])
			is += fmt.Sprintf("    %s\n", after[i])
		}
	}
	return "The page said:\n" + was + "Now it says:\n" + is + "You are told:\n"
}

// scenes are the plot; after the last the first comes again. Each differs from the one
// before it in at least one keyword.
var scenes = []scene{
	{"Sold out. The glassblower is at work.", "49 euros.", "Delivery within a week.", "Ada looks through the window."},
	{"In stock: twelve lanterns, fresh from the furnace.", "49 euros.", "Delivery within a week.", "Ada takes two of them."},
	{"In stock: nine lanterns.", "49 euros.", "Free delivery until midnight!", "Grace asks what delivery costs."},
	{"In stock: four lanterns.", "Half price for one hour: 24.50 euros.", "Free delivery until midnight!", "There is a queue at the door."},
	{"In stock, but this is the last one.", "Half price for one hour: 24.50 euros.", "Free delivery until midnight!", "Two hands reach for it."},
	{"Sold out. The glassblower goes home.", "49 euros.", "Delivery within a week.", "Linus came too late."},
	{"Sold out. The glassblower dreams of lanterns.", "49 euros.", "Free delivery for everyone who waits.", "The street is quiet."},
}

var shopPage = template.Must(template.New("shop").Parse(`<!doctype html>
<html lang="en"><head><title>The Lantern Shop</title></head><body>
<h1>Argus, a lantern with a hundred eyes</h1>
<p>Blown by hand from recycled glass, it lights a whole room.</p>
<ul><li>{{.Stock}}</li><li>Price: {{.Price}}</li><li>{{.Delivery}}</li></ul>
<p>{{.Visitor}}</p>
<footer>Open every day from ten to six. We are glad to see you.</footer>
</body></html>
`))

// story serves the next scene at every request.
type story struct {
	mu   sync.Mutex
	next int
}

// ServeHTTP serves the next scene.
func (s *story) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	now := scenes[s.next%len(scenes)]
	s.next++
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = shopPage.Execute(w, now) // the reader went away
}
