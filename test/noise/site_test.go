package noise

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// made is a page of the site: at check i it returns its body and the texts that a reader must be told.
type made struct {
	name string
	page func(i int, now time.Time, r *rand.Rand) (string, []string)
}

var wordsList = func() (out []string) {
	r := rand.New(rand.NewPCG(3, 3))
	on, nu := strings.Fields("b br c ch d dr f g gl h k l m n p pr r s st t tr v w"), strings.Fields("a e i o u ai ea ou")
	for range 3000 {
		w := ""
		for range 2 + r.IntN(2) {
			w += on[r.IntN(len(on))] + nu[r.IntN(len(nu))]
		}
		out = append(out, w+[]string{"", "n", "r", "s"}[r.IntN(4)])
	}
	return out
}()

var common = strings.Fields("the of and to in a is for with that")

func sentence(r *rand.Rand, n int) string {
	var s []string
	for range n {
		if len(s) > 0 && r.IntN(10) < 3 {
			s = append(s, common[r.IntN(len(common))])
			continue
		}
		s = append(s, wordsList[r.IntN(len(wordsList))])
	}
	return strings.ToUpper(s[0][:1]) + strings.Join(s, " ")[1:] + "."
}

func hex(r *rand.Rand) string { return fmt.Sprintf("%016x", r.Uint64()) }

func ago(d time.Duration) string {
	p := func(n int, s string) string {
		if n != 1 {
			s += "s"
		}
		return fmt.Sprintf("%d %s ago", n, s)
	}
	switch {
	case d < time.Hour:
		return p(int(d.Minutes()), "minute")
	case d < 24*time.Hour:
		return p(int(d.Hours()), "hour")
	}
	return p(int(d.Hours()/24), "day")
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// trueAt says at which checks a page has a true change.
func trueAt(i int) bool { return i > 0 && (i%23 == 11 || i == 3 || i == 60) }

func pages() []made {
	var out []made
	add := func(name string, f func() func(i int, now time.Time, r *rand.Rand) (string, []string)) {
		out = append(out, made{name, f()})
	}
	paras := func(seed uint64, n int) []string {
		r := rand.New(rand.NewPCG(seed, 1))
		var p []string
		for range n {
			p = append(p, sentence(r, 12+r.IntN(30)))
		}
		return p
	}
	join := func(tag string, p []string) string {
		var s strings.Builder
		for _, x := range p {
			s.WriteString("<" + tag + ">" + x + "</" + tag + ">")
		}
		return s.String()
	}
	editPara := func(p []string, r *rand.Rand) []string {
		k := r.IntN(len(p))
		w := fmt.Sprintf("%s%d", wordsList[r.IntN(len(wordsList))], r.IntN(900)+100)
		f := strings.Fields(p[k])
		at := r.IntN(len(f)-2) + 1
		f[at] = w
		p[k] = strings.Join(f, " ")
		return []string{w}
	}
	add("blog", func() func(int, time.Time, *rand.Rand) (string, []string) {
		p, views, comments := paras(1, 8), 1523, []string{"First comment here"}
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			views += 1 + r.IntN(40)
			var t []string
			if trueAt(i) {
				if i%2 == 0 {
					t = editPara(p, r)
				} else {
					c := sentence(r, 9)
					comments = append(comments, c)
					t = []string{c}
				}
			}
			return "<header><span class=clock>" + now.Format("Mon 2 Jan 2006 15:04") + "</span></header><h1>A post</h1><div class=meta>By Hera · " + thousands(views) + " views · " + fmt.Sprint(len(comments)) + " comments</div>" + join("p", p) + "<h2>Comments</h2>" + join("p", comments), t
		}
	})
	add("shop", func() func(int, time.Time, *rand.Rand) (string, []string) {
		price, stock, sold := 1990, "In stock", 523
		p := paras(2, 4)
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			sold += r.IntN(3)
			var t []string
			if trueAt(i) {
				if i%3 == 0 {
					stock = map[string]string{"In stock": "Sold out", "Sold out": "In stock"}[stock]
					t = []string{strings.Fields(stock)[0]}
				} else {
					price += 100 + r.IntN(300)
					t = []string{fmt.Sprintf("%d.%02d", price/100, price%100)}
				}
			}
			ads := paras(99, 12)
			return "<div class=ad>" + ads[r.IntN(12)] + "</div><h1>Lantern</h1><p>Price " + fmt.Sprintf("%d.%02d", price/100, price%100) + " EUR · " + fmt.Sprint(sold) + " sold</p><p>" + stock + "</p><p>" + fmt.Sprint(2+r.IntN(40)) + " people are looking at this</p>" + join("p", p), t
		}
	})
	add("releases", func() func(int, time.Time, *rand.Rand) (string, []string) {
		type rel struct {
			name string
			at   time.Time
		}
		var rels []rel
		stars := 12873
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			if rels == nil {
				for k := range 6 {
					rels = append(rels, rel{fmt.Sprintf("v1.%d.0", 6-k), now.Add(-time.Duration(1+k*k*70) * time.Hour)})
				}
			}
			var t []string
			if trueAt(i) {
				n := fmt.Sprintf("v2.%d.0", i)
				rels = append([]rel{{n, now.Add(-2 * time.Minute)}}, rels...)
				t = []string{n}
			}
			stars += r.IntN(5)
			s := "<div>Star " + thousands(stars) + "</div><h1>Releases</h1>"
			for _, x := range rels {
				s += "<section><h2>" + x.name + "</h2><div>hera released this " + ago(now.Sub(x.at)) + "</div><p>Notes of " + x.name + " and some fixes</p></section>"
			}
			return s, t
		}
	})
	add("jobs", func() func(int, time.Time, *rand.Rand) (string, []string) {
		type job struct {
			title string
			at    time.Time
		}
		var jobs []job
		pool := paras(5, 20)
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			if jobs == nil {
				for k := range 8 {
					jobs = append(jobs, job{sentence(r, 5), now.Add(-time.Duration(5+k*47) * time.Minute)})
				}
			}
			var t []string
			if trueAt(i) {
				if i%2 == 0 {
					j := job{sentence(r, 5), now}
					jobs = append([]job{j}, jobs...)
					t = []string{j.title}
				} else {
					t = []string{jobs[3].title}
					jobs = append(jobs[:3:3], jobs[4:]...)
				}
			}
			s := "<h1>Jobs</h1><ul>"
			for _, j := range jobs {
				s += "<li><b>" + j.title + "</b> <small>Posted " + ago(now.Sub(j.at)) + "</small></li>"
			}
			s += "</ul><h2>Recommended</h2><ul>"
			for _, k := range r.Perm(20)[:4] {
				s += "<li>" + pool[k] + "</li>"
			}
			return s + "</ul><footer>csrf " + hex(r) + "</footer>", t
		}
	})
	add("weather*", func() func(int, time.Time, *rand.Rand) (string, []string) {
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			return fmt.Sprintf("<h1>Weather</h1><p>Now %d °C, wind %d km/h, humidity %d %%</p><p>Observed at %s</p>", 5+r.IntN(4), r.IntN(30), 40+r.IntN(50), now.Format("15:04")), nil
		}
	})
	add("forum", func() func(int, time.Time, *rand.Rand) (string, []string) {
		var threads []string
		replies := map[string]int{}
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			if threads == nil {
				for range 15 {
					threads = append(threads, sentence(r, 6))
				}
			}
			var t []string
			if trueAt(i) {
				n := sentence(r, 6)
				threads = append([]string{n}, threads...)
				t = []string{n}
			}
			s := "<h1>Forum</h1><table>"
			for _, x := range threads {
				replies[x] += r.IntN(2) * r.IntN(2)
				s += fmt.Sprintf("<tr><td>%s</td><td>%d replies</td><td>%s views</td></tr>", x, replies[x], thousands(replies[x]*40+i*3+r.IntN(20)))
			}
			return s + fmt.Sprintf("</table><p>Last post by %s</p><p>Online: %d users and %d guests</p>", wordsList[r.IntN(70)], 300+r.IntN(50), 40+r.IntN(20)), t
		}
	})
	add("terms", func() func(int, time.Time, *rand.Rand) (string, []string) {
		p := paras(7, 40)
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if trueAt(i) {
				t = editPara(p, r)
			}
			return "<h1>Terms</h1>" + join("p", p) + "<footer><p>Request id " + hex(r) + "</p><p>Generated " + now.Add(time.Duration(r.IntN(60))*time.Second).Format("2006-01-02 15:04:05") + "</p></footer>", t
		}
	})
	add("news", func() func(int, time.Time, *rand.Rand) (string, []string) {
		var items []string
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			n := 1 + r.IntN(3)
			if items == nil {
				n = 30
			}
			for range n {
				x := sentence(r, 8)
				t = append(t, x)
				items = append([]string{x}, items...)
			}
			items = items[:30]
			return "<p>" + now.Format("15:04") + "</p><h1>News</h1>" + join("h3", items), t
		}
	})
	add("stock*", func() func(int, time.Time, *rand.Rand) (string, []string) {
		v := 10000
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			v += r.IntN(101) - 50
			return fmt.Sprintf("<h1>ARGUS</h1><p>%d.%02d EUR</p><p>Delayed by 15 minutes</p>", v/100, v%100), nil
		}
	})
	add("status", func() func(int, time.Time, *rand.Rand) (string, []string) {
		state := map[int]string{}
		var inc []string
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if trueAt(i) {
				if i%2 == 0 {
					k := r.IntN(6)
					if state[k] == "" {
						state[k] = "Degraded performance"
						t = []string{"Degraded performance"}
					} else {
						state[k] = ""
						t = []string{"Operational"}
					}
				} else {
					x := sentence(r, 14)
					inc = append([]string{x}, inc...)
					t = []string{x}
				}
			}
			s := "<h1>Status</h1><table>"
			for k := range 6 {
				x := state[k]
				if x == "" {
					x = "Operational"
				}
				s += fmt.Sprintf("<tr><td>%s service</td><td>%s</td></tr>", wordsList[k], x)
			}
			return s + "</table><h2>Incidents</h2>" + join("p", inc) + "<p>Last checked " + now.Format("15:04:05") + " UTC · uptime 99.98 %</p>", t
		}
	})
	add("recipe", func() func(int, time.Time, *rand.Rand) (string, []string) {
		p, pool := paras(11, 12), paras(12, 100)
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if trueAt(i) {
				t = editPara(p, r)
			}
			s := "<h1>Soup</h1><blockquote>" + sentence(r, 10) + "</blockquote>" + join("li", p) + "<h2>You may also like</h2>"
			for _, k := range r.Perm(100)[:4] {
				s += "<div><h3>" + pool[k] + "</h3></div>"
			}
			return s + "<footer>All rights reserved</footer>", t
		}
	})
	add("event", func() func(int, time.Time, *rand.Rand) (string, []string) {
		seats := 400
		p := paras(13, 5)
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if trueAt(i) {
				seats -= 1 + r.IntN(9)
				t = []string{fmt.Sprint(seats)}
			}
			d := 20*24*time.Hour - time.Duration(i)*10*time.Minute
			return fmt.Sprintf("<h1>Concert</h1><p>%d seats left · begins in %d days %d hours %d minutes</p>", seats, int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60) + join("p", p), t
		}
	})
	add("wiki", func() func(int, time.Time, *rand.Rand) (string, []string) {
		p, v := paras(14, 20), 12345
		edited := "12 May 2026 at 10:15"
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			v += r.IntN(9)
			var t []string
			if trueAt(i) {
				t = editPara(p, r)
				edited = now.Format("2 January 2006 at 15:04")
			}
			return "<h1>Argus</h1>" + join("p", p) + "<p>This page was last edited on " + edited + " and was viewed " + thousands(v) + " times.</p>", t
		}
	})
	add("abtest", func() func(int, time.Time, *rand.Rand) (string, []string) {
		p := paras(15, 10)
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if trueAt(i) {
				t = editPara(p, r)
			}
			return "<h1>" + []string{"Try it free today", "Start your trial now"}[r.IntN(2)] + "</h1>" + join("p", p) + "<p>Session " + hex(r) + " expires soon</p>", t
		}
	})
	add("pricelist", func() func(int, time.Time, *rand.Rand) (string, []string) {
		var price []int
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if price == nil {
				for range 60 {
					price = append(price, 1000+r.IntN(9000))
				}
			} else {
				for _, k := range r.Perm(60)[:3] {
					price[k] += 1 + r.IntN(500)
					t = append(t, fmt.Sprintf("%d.%02d", price[k]/100, price[k]%100))
				}
			}
			s := "<p>" + now.Format("15:04:05") + "</p><table>"
			for k, v := range price {
				s += fmt.Sprintf("<tr><td>%s %s</td><td>%d.%02d EUR</td></tr>", wordsList[k], wordsList[(k*7)%70], v/100, v%100)
			}
			return s + "</table>", t
		}
	})
	add("banner", func() func(int, time.Time, *rand.Rand) (string, []string) {
		p := paras(17, 6)
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if trueAt(i) { // right behind the banner
				x := sentence(r, 11)
				p = append([]string{x}, p...)
				t = []string{x}
			}
			s := "<h1>Magazine</h1>"
			if r.IntN(2) == 0 {
				s += "<div class=banner>Subscribe to our letter and win a lantern</div>"
			}
			return s + join("p", p), t
		}
	})
	add("auction", func() func(int, time.Time, *rand.Rand) (string, []string) {
		bid, n := 100, 0
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if i > 0 && r.IntN(10) < 3 {
				bid += 5 + r.IntN(50)
				n++
				t = []string{fmt.Sprint(bid)}
			}
			d := 40*time.Hour - time.Duration(i)*10*time.Minute
			return fmt.Sprintf("<h1>Old violin</h1><p>Current bid: %d EUR</p><p>%d bids</p><p>Ends in %dh %dm</p><p>%d watchers</p>", bid, n, int(d.Hours()), int(d.Minutes())%60, 20+r.IntN(9)), t
		}
	})
	add("adnews", func() func(int, time.Time, *rand.Rand) (string, []string) {
		p := paras(18, 10)
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if trueAt(i) { // a new paragraph right behind an advertisement that never comes again
				x := sentence(r, 15)
				p = append([]string{x}, p...)
				t = []string{x}
			}
			return "<h1>Daily</h1><aside>" + sentence(r, 6+r.IntN(12)) + "</aside>" + join("p", p), t
		}
	})
	add("night", func() func(int, time.Time, *rand.Rand) (string, []string) {
		p, v := paras(21, 6), 12345
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			if now.Hour() >= 6 {
				v += 1 + r.IntN(9)
			}
			var t []string
			if trueAt(i) {
				t = editPara(p, r)
			}
			return "<h1>Argus</h1>" + join("p", p) + "<p>Viewed " + thousands(v) + " times</p>", t
		}
	})
	add("toggle20%", func() func(int, time.Time, *rand.Rand) (string, []string) {
		p, on := paras(22, 6), true
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if i > 0 && r.IntN(5) == 0 {
				on = !on
				t = []string{"stock"}
			}
			s := "<p>In stock, buy now</p>"
			if !on {
				s = "<p>No stock today</p>"
			}
			return "<h1>Lamp</h1>" + s + join("p", p), t
		}
	})
	add("shortlist60%", func() func(int, time.Time, *rand.Rand) (string, []string) {
		var l []string
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			for len(l) < 5 {
				l = append(l, sentence(r, 7))
			}
			var t []string
			if i > 0 && r.IntN(10) < 6 {
				x := sentence(r, 7)
				l = append([]string{x}, l[:4]...)
				t = []string{x}
			}
			return "<h1>Alerts</h1>" + join("p", l) + "<p>All rights reserved</p>", t
		}
	})
	add("latest40%", func() func(int, time.Time, *rand.Rand) (string, []string) {
		x, p := "Nothing yet", paras(23, 6)
		return func(i int, now time.Time, r *rand.Rand) (string, []string) {
			var t []string
			if i > 0 && r.IntN(10) < 4 {
				x = sentence(r, 9)
				t = []string{x}
			}
			return "<h1>Town</h1><p>" + x + "</p>" + join("p", p), t
		}
	})
	return out
}
