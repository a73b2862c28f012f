package index

import (
	"bytes"
	"sync"
)

// cached is how many pages are remembered.
const cached = 4096

// cache remembers what stored pages decode to. It is told what is stored each time, so
// that it cannot be wrong, whatever became of the transaction that filled it.
type cache struct {
	mu    sync.Mutex
	pages map[string]decoded
}

type decoded struct {
	stored []byte
	page   Page
}

// page decodes what is stored for the page with the given URL. Nobody may change what it
// returns but a clone.
func (c *cache) page(url string, stored []byte) (Page, error) {
	c.mu.Lock()
	d, ok := c.pages[url]
	c.mu.Unlock()
	if ok && bytes.Equal(d.stored, stored) {
		return d.page, nil
	}
	var p Page
	if err := decode(stored, &p); err != nil {
		return p, err
	}
	c.put(url, stored, p)
	return p, nil
}

// put remembers that p is what stored decodes to.
func (c *cache) put(url string, stored []byte, p Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == nil {
		c.pages = make(map[string]decoded)
	}
	if _, ok := c.pages[url]; !ok && len(c.pages) >= cached {
		for other := range c.pages { // any will do
			delete(c.pages, other)
			break
		}
	}
	c.pages[url] = decoded{stored, p}
}
