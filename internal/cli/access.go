package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	httpsource "github.com/vokter/vokter/sources/http"
)

// accessFlags are the flags for a page that asks for credentials, named as those of curl. The value
// @FILE stands for the content of FILE, which the list of processes does not show.
type accessFlags struct {
	headers, cookies []string
	user, proxy      string
}

// add adds the flags to fs.
func (f *accessFlags) add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.headers, "header", nil, "send the `HEADER` \"Name: value\" to the host of the page, or @FILE with one on each line (repeatable)")
	fs.StringArrayVar(&f.cookies, "cookie", nil, "send the `COOKIES` \"name=value; name=value\" to the host of the page, or @FILE with them (repeatable)")
	fs.StringVar(&f.user, "user", "", "log in to the host of the page with basic authentication as `NAME:PASSWORD`, or @FILE with both")
	fs.StringVar(&f.proxy, "proxy", "", "connect to the host of the page through the proxy at `URL`, or @FILE with the URL: http, https, socks5 or socks5h")
	putInGroup(fs, pipeline.GroupPage, "header", "cookie", "user", "proxy")
}

// accessFlagNames lists the flags that send credentials to a page.
const accessFlagNames = "--user, --header or --cookie"

// toAccess returns the access settings of the flags for the host of page, or nil if there are none. Its
// errors show no secret.
func (f *accessFlags) toAccess(page string) (map[string]httpsource.Access, error) {
	if len(f.headers) == 0 && len(f.cookies) == 0 && f.user == "" && f.proxy == "" {
		return nil, nil
	}
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("--header, --cookie, --user and --proxy are for pages over http and https; leave them out")
	}
	a := httpsource.Access{
		Hosts:   []string{u.Scheme + "://" + u.Host},
		Headers: make(map[string]registry.Secret), Cookies: make(map[string]registry.Secret),
	}
	if u.Scheme == "https" {
		a.Hosts = []string{u.Host}
	}
	if err := errors.Join(f.addHeaders(&a), f.addCookies(&a), f.addUser(&a), f.addProxy(&a)); err != nil {
		return nil, err
	}
	settings := map[string]httpsource.Access{"watch": a}
	return settings, withFlagNames(httpsource.CheckAccess(settings))
}

func (f *accessFlags) addHeaders(a *httpsource.Access) error {
	for _, flag := range f.headers {
		text, err := valueOrFile("header", flag)
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			name, value, ok := strings.Cut(line, ":")
			name, value = strings.TrimSpace(name), strings.TrimSpace(value)
			if !ok || name == "" || value == "" {
				return errors.New("--header: it is not a name, a colon and a value; write --header \"Name: value\"")
			}
			a.Headers[name] = registry.NewSecret(value)
		}
	}
	return nil
}

func (f *accessFlags) addCookies(a *httpsource.Access) error {
	for _, flag := range f.cookies {
		text, err := valueOrFile("cookie", flag)
		if err != nil {
			return err
		}
		cookies, err := http.ParseCookie(text)
		if err != nil {
			return errors.New("--cookie: it is not a list of cookies; write --cookie \"name=value; name=value\"")
		}
		for _, c := range cookies {
			a.Cookies[c.Name] = registry.NewSecret(c.Value)
		}
	}
	return nil
}

func (f *accessFlags) addUser(a *httpsource.Access) error {
	if f.user == "" {
		return nil
	}
	text, err := valueOrFile("user", f.user)
	if err != nil {
		return err
	}
	name, password, ok := strings.Cut(text, ":")
	if !ok || name == "" || password == "" {
		return errors.New("--user: it is not a name, a colon and a password; write --user NAME:PASSWORD, or --user @FILE")
	}
	a.Username, a.Password = name, registry.NewSecret(password)
	return nil
}

func (f *accessFlags) addProxy(a *httpsource.Access) error {
	if f.proxy == "" {
		return nil
	}
	text, err := valueOrFile("proxy", f.proxy)
	a.Proxy = registry.NewSecret(text)
	return err
}

// valueOrFile returns value, or the content of the file that it names as @FILE.
func valueOrFile(flag, value string) (string, error) {
	name, ok := strings.CutPrefix(value, "@")
	if !ok {
		return value, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flag, render.FileError(name, err))
	}
	text := strings.TrimSpace(string(b))
	if text == "" {
		return "", fmt.Errorf("--%s: the file %s is empty", flag, name)
	}
	return text, nil
}

// withFlagNames returns the errors of CheckAccess with the names of the flags.
func withFlagNames(err error) error {
	if err == nil {
		return nil
	}
	found := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		found = slices.Clone(joined.Unwrap())
	}
	flags := map[string]string{"headers": "header", "cookies": "cookie", "username": "user", "password": "user", "proxy": "proxy"}
	for i, err := range found {
		fe, ok := errors.AsType[*pipeline.FieldError](err)
		if !ok {
			continue
		}
		parts := strings.SplitN(fe.Field, ".", 3) // "watch", the setting, and the name of a header or cookie
		if len(parts) > 1 && flags[parts[1]] != "" {
			found[i] = fmt.Errorf("--%s: %s", strings.Join(append([]string{flags[parts[1]]}, parts[2:]...), " "), fe.Reason)
		}
	}
	return errors.Join(found...)
}
