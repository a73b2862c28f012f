package manage

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

// TestOneBackupAtATime: each takes the room of a copy.
func TestOneBackupAtATime(t *testing.T) {
	began, end := make(chan struct{}, 1), make(chan struct{})
	f := &fake{copied: "a tar stream", copying: func() {
		began <- struct{}{}
		<-end
	}}
	c, base := serve(t, f)
	first := make(chan error, 1)
	go func() { first <- c.Backup(t.Context(), new(bytes.Buffer)) }()
	<-began
	if err := c.Backup(t.Context(), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "another backup is being made; try again") {
		t.Errorf("a second one: got %v", err)
	}
	if status, header, _ := send(t, "GET", base+Prefix+"/backup", "", nil); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("a second one: got %d, %v", status, header)
	}
	close(end)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := c.Backup(t.Context(), new(bytes.Buffer)); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// TestCloseWaitsForBackups, which remove what they made when they end, and refuses others.
func TestCloseWaitsForBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		a := Handler(&fake{copied: "a tar stream", copying: func() { <-end }}, Process{}, aToken)
		backup := func() int {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, Prefix+"/backup", nil)
			r.Host = "127.0.0.1"
			r.Header.Set("Authorization", "Bearer "+aToken)
			a.ServeHTTP(w, r)
			return w.Code
		}
		ended, closed := make(chan int, 1), make(chan struct{})
		go func() { ended <- backup() }()
		synctest.Wait()
		go func() {
			defer close(closed)
			a.Close()
			a.Close() // does nothing more
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("it did not wait")
		default:
		}
		close(end)
		if code := <-ended; code != http.StatusOK {
			t.Errorf("the backup was answered %d", code)
		}
		<-closed
		if code := backup(); code != http.StatusServiceUnavailable {
			t.Errorf("after the end: %d", code)
		}
	})
}
