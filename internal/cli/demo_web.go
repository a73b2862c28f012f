package cli

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks/inbox"
)

const (
	// storyLength is how long ago the story of the demo begins on its web page.
	storyLength = 30 * 24 * time.Hour
	// sceneLength is how long a scene of the demo lasts once its web page is open.
	sceneLength = 30 * time.Second
)

// shopTerms are the terms of the demo's shop, by the scene in which they begin.
var shopTerms = map[int]string{
	0: "We deliver within a week. You may send a lantern back within 14 days.",
	2: "We deliver within a week, free of charge until midnight. You may send a lantern back within 14 days.",
	5: "We deliver within a week. You may send a lantern back within 30 days, if it is not broken.",
}

var termsPage = template.Must(template.New("terms").Parse(`<!doctype html>
<html lang="en"><head><title>Terms of the Lantern Shop</title></head><body>
<h1>Terms</h1>
<p>{{.}}</p>
<p>We keep your address until your lantern has arrived, and no longer.</p>
</body></html>
`))

// shopSite is the shop of the demo. It stays in a scene until the next one begins.
type shopSite struct{ scene atomic.Int64 }

// ServeHTTP serves a page of the current scene.
func (s *shopSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(s.scene.Load()) % len(scenes)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	switch r.URL.Path {
	case "/":
		_ = shopPage.Execute(w, scenes[n]) // fails only where the client has gone
	case "/terms":
		begun := n
		for shopTerms[begun] == "" {
			begun--
		}
		_ = termsPage.Execute(w, shopTerms[begun])
	default:
		http.NotFound(w, r)
	}
}

// runDemoWeb shows the story of the demo on the web page at addr, as if it had been watched for a month.
func (a *app) runDemoWeb(ctx context.Context, addr string) (err error) {
	dir, err := os.MkdirTemp("", "vokter-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot serve the demo's page: %w", err)
	}
	shop := new(shopSite)
	site := &http.Server{Handler: shop, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = site.Serve(l) }() // ends with Close
	defer site.Close()
	url := "http://" + l.Addr().String() + "/"
	logins, err := manage.OpenLogins(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	var behind atomic.Int64 // how far the clock of the story is behind
	behind.Store(int64(storyLength))
	cfg := vokter.Config{
		Dir: dir, Origin: "demo", Now: func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) },
		Sinks:  map[string]pipeline.Sink{config.Inbox: inbox.Inbox{}},
		Fetch:  vokter.FetchConfig{Rate: 1000, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Logger: a.flags.logger(a.stderr, slog.LevelWarn),
	}
	told := make(chan string, 1)
	at := listenSettings{addr: addr, logins: logins, announced: func(addr string) { told <- addr }}
	_, err = a.runPipeline(ctx, cfg, at, "", func(ctx context.Context, r *vokter.Router) {
		if err := tellStory(ctx, r, shop, &behind, url); err != nil {
			if ctx.Err() != nil {
				return
			}
			cfg.Logger.Error("the story cannot be told", "err", err)
			return
		}
		a.printLink(<-told, logins.NewLink())
		tick := time.NewTicker(sceneLength)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				shop.scene.Add(1)
			case <-ctx.Done():
				return
			}
		}
	})
	return err
}

// tellStory watches the shop at url and has all scenes checked, as if they were spread over a month until now.
func tellStory(ctx context.Context, r *vokter.Router, shop *shopSite, behind *atomic.Int64, url string) error {
	seen := make(chan flow.Observation, 64)
	defer r.Observe(func(ob flow.Observation) {
		if ob.Kind == flow.KindCheck || ob.Kind == flow.KindVersion {
			select {
			case seen <- ob:
			case <-ctx.Done():
			}
		}
	})()
	await := func(kind, page string) error {
		for {
			select {
			case ob := <-seen:
				if ob.Kind == kind && (page == "" || ob.Page == page) {
					return nil
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	price := pipeline.View{Select: []pipeline.Selector{{From: "li:nth-of-type(2)"}}, Value: &pipeline.Value{}}
	for _, s := range []pipeline.Subscription{
		{URL: url, Keywords: demoKeywords}, {URL: url, View: price, Tags: []string{"price"}}, {URL: url + "terms"},
	} {
		s.Client, s.Sinks, s.Interval = "you", []string{config.Inbox}, pipeline.Every(sceneLength)
		if err := r.Subscribe(ctx, s); err != nil {
			return err
		}
		if err := await(flow.KindVersion, ""); err != nil {
			return err
		}
	}
	for i := 1; i < len(scenes); i++ {
		shop.scene.Store(int64(i))
		behind.Store(int64(storyLength) * int64(len(scenes)-1-i) / int64(len(scenes)-1))
		for _, page := range []string{url, url + "terms"} {
			if err := r.CheckNow(ctx, page); err != nil {
				return err
			}
			if err := await(flow.KindCheck, page); err != nil {
				return err
			}
		}
	}
	return nil
}
