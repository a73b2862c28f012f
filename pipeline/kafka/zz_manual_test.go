package kafka

import ("testing";"os";"fmt";"log/slog";"time")

func TestManual(t *testing.T) {
	d := os.Getenv("MANUAL"); if d == "" { t.Skip() }
	c := testConfig([]string{"127.0.0.1:39192"})
	c.Logger = slog.New(slog.NewTextHandler(os.Stdout, nil))
	last := ""
	client, err := connect(t.Context(), c, c.Logger, func(r error) { if s := fmt.Sprint(r); s != last { last = s; fmt.Println(time.Now().Format("05.000"), s) } })
	if err != nil { t.Fatal(err) }
	client.Close()
	admin := testAdmin(t, c)
	s := time.Now()
	info, err := ensureTopics(t.Context(), admin, c, c.specs(wired))
	fmt.Println(time.Since(s), info, err)
}
