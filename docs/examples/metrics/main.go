// Command metrics runs the stages of Vokter in the message.Router that a program has already, with
// the Prometheus metrics of Watermill around its handlers, and serves them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/metrics"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9090", "where /metrics is served")
	url := flag.String("url", "https://example.com/", "the page to watch")
	keyword := flag.String("keyword", "out of stock", "the keyword to watch for")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	registry := prometheus.NewRegistry()
	server := &http.Server{Addr: *listen, Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	defer server.Close()
	err := watch(ctx, registry, vokter.Config{
		Sinks: map[string]pipeline.Sink{"print": pipeline.SinkFunc(func(_ context.Context, n pipeline.Notification) error {
			for _, d := range n.Diffs {
				fmt.Println(n.URL, d.Event, d.Keyword)
			}
			return nil
		})},
		Subscriptions: []pipeline.Subscription{{URL: *url, Keywords: []string{*keyword}, Sinks: []string{"print"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
}

// watch carries out cfg in a message.Router with Watermill's metrics, which go to registry. The
// router goes on until the pipeline has ended: the pipeline still delivers once ctx is done.
func watch(ctx context.Context, registry *prometheus.Registry, cfg vokter.Config) error {
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	builder := metrics.NewPrometheusMetricsBuilder(registry, "", "")
	builder.AddPrometheusRouterMetrics(router)
	ran := make(chan error, 1)
	go func() { ran <- router.Run(context.WithoutCancel(ctx)) }()

	cfg.Watermill = router
	pages, err := vokter.New(cfg)
	if err == nil {
		err = pages.Run(ctx)
	}
	return errors.Join(err, router.Close(), <-ran)
}
