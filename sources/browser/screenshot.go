package browser

import (
	"context"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/vokter/vokter/pipeline"
)

const (
	// maxScreenshotHeight is how many pixels of the height of a page a screenshot shows.
	maxScreenshotHeight = 4096
	// screenshotTimeout is how long a screenshot may take.
	screenshotTimeout = 15 * time.Second
)

// screenshot returns a picture of the page from its top, in the best of three qualities with which it is
// small enough. It returns nil where there is none: the text of the page is worth more than its picture.
func (t *tab) screenshot() []byte {
	ctx, cancel := context.WithTimeout(t.ctx, screenshotTimeout)
	defer cancel()
	layout, err := chromedp.Call(ctx, cdppage.GetLayoutMetrics, struct{}{})
	if err != nil {
		return nil
	}
	clip := cdppage.Viewport{Width: windowWidth, Height: windowHeight}
	if size := layout.CSSContentSize; size != nil {
		clip.Height = min(max(size.Height, 1), maxScreenshotHeight)
	}
	beyond := true
	for _, how := range []struct {
		quality int64
		scale   float64
	}{{70, 1}, {40, 1}, {40, 0.5}} {
		clip.Scale = how.scale
		shot, err := chromedp.Call(ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{
			Format: cdppage.CaptureScreenshotFormatWebp, Quality: &how.quality, Clip: &clip, CaptureBeyondViewport: &beyond,
		})
		if err != nil {
			return nil
		}
		if len(shot.Data) <= pipeline.MaxScreenshot {
			return shot.Data
		}
	}
	return nil
}
