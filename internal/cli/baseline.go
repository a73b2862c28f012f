package cli

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/reading"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// sayBaseline makes a Router of cfg log to log what the first check read: the baseline, or a version
// that stands since an earlier run. A run of some checks says only what is a baseline.
func sayBaseline(cfg *vokter.Config, log *slog.Logger) {
	s := cfg.Subscriptions[0]
	every := max(time.Duration(s.WithDefaults().Interval), pipeline.DefaultMinInterval)
	if cfg.Every != nil {
		every = *cfg.Every
	}
	goesOn := cfg.Checks == 0
	cfg.Middleware = map[string][]flow.Middleware{flow.GroupIndex: {reading.Middleware(s, func(r reading.Reading) {
		if !r.Baseline && !goesOn {
			return
		}
		what := fmt.Sprintf("read %s", count(r.Words, "word"))
		if r.Title != "" {
			what = fmt.Sprintf("read %q, %s", r.Title, count(r.Words, "word"))
		}
		if r.Baseline {
			what += ": this is the baseline"
		}
		if goesOn {
			log.Info(what+"; changes are reported from now on", "url", s.URL, "check_every", every)
		} else {
			log.Info(what+"; the next run reports what changed", "url", s.URL)
		}
		if r.Unstemmed {
			log.Warn("nothing is stemmed: the language of the page is not known, or has no stems; name it, such as with --language en")
		}
		for _, k := range r.Keywords {
			sayKeyword(log, k)
		}
	})}}
}

// sayKeyword logs whether k is on the page now.
func sayKeyword(log *slog.Logger, k reading.Keyword) {
	switch {
	case k.Found > 0:
		log.Info(fmt.Sprintf("%q is on the page now, %s", k.Keyword, count(k.Found, "time")))
	case k.Near == "":
		log.Info(fmt.Sprintf("%q is not on the page now", k.Keyword))
	case k.Word == k.Keyword:
		log.Warn(fmt.Sprintf("%q is not on the page now, but %q is: is it misspelled?", k.Keyword, k.Near))
	default:
		log.Warn(fmt.Sprintf("%q is not on the page now: %q is not there, but %q is: is it misspelled?", k.Keyword, k.Word, k.Near))
	}
}
