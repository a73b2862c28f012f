package stored

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestValues(t *testing.T) {
	c := NewCache[string, int](100)
	c.Put("a", 1, 10)
	c.Put("b", 2, 20)
	c.Put("a", 3, 30)
	if v, ok := c.Get("a"); v != 3 || !ok || c.Bytes() != 50 {
		t.Errorf("got %d, %v and %d bytes, want the later value", v, ok, c.Bytes())
	}
	if v, ok := c.Take("a"); v != 3 || !ok || c.Bytes() != 20 {
		t.Errorf("took %d, %v; %d bytes are left", v, ok, c.Bytes())
	}
	if _, ok := c.Take("a"); ok {
		t.Error("took it twice")
	}
	c.Put("c", 4, 40)
	c.Delete(func(k string) bool { return k == "b" })
	if _, ok := c.Get("b"); ok || c.Bytes() != 40 {
		t.Errorf("%d bytes are left, want 40", c.Bytes())
	}
	c.Put("large", 5, 1000)
	if v, _ := c.Get("large"); v != 5 || c.Bytes() != 1000 {
		t.Errorf("got %d and %d bytes, want the one that is larger than the limit", v, c.Bytes())
	}
	c.Put("d", 6, 1)
	if _, ok := c.Get("large"); ok || c.Bytes() != 1 {
		t.Errorf("%d bytes are left, want 1", c.Bytes())
	}
}

// TestBytesAreBounded also uses some values all the time, most of which must stay.
func TestBytesAreBounded(t *testing.T) {
	c := NewCache[int, int](1000)
	const often = 10
	misses := 0
	for i := range 10_000 {
		c.Put(often+i, i, 10)
		if _, ok := c.Get(i % often); !ok {
			misses++
			c.Put(i%often, i, 10)
		}
		if c.Bytes() > 1000 {
			t.Fatalf("%d bytes", c.Bytes())
		}
	}
	if misses > 1000 {
		t.Errorf("a tenth of the values was used all the time, and missed %d times of 10,000", misses)
	}
}

func TestUnusedValuesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCache[string, int](1000)
		c.Put("used", 1, 10)
		for i := range 50 {
			c.Put(fmt.Sprint(i), 1, 10)
		}
		for range 8 {
			time.Sleep(unused / 3)
			if _, ok := c.Get("used"); !ok {
				t.Fatal("a value that is used is gone")
			}
		}
		if c.Bytes() != 10 {
			t.Errorf("%d bytes are left, want 10", c.Bytes())
		}
		time.Sleep(2*unused + time.Second)
		if c.Bytes() != 0 || c.entries != nil {
			t.Errorf("%d bytes are left, want none", c.Bytes())
		}
		c.Put("again", 1, 10)
		time.Sleep(2*unused + time.Second)
		if c.Bytes() != 0 {
			t.Errorf("%d bytes are left, want none", c.Bytes())
		}
	})
}
