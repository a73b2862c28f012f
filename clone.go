package vokter

import (
	"reflect"
	"strings"
	"sync"
)

// clone returns a copy of c that shares no list, map or setting behind a pointer with it. Plugins, functions and
// values that only their own package can look into, such as a Logger, are the same.
func (c Config) clone() Config {
	detach(reflect.ValueOf(&c).Elem())
	return c
}

// detach replaces the lists, maps and settings that can be reached from v, which can be set, by copies.
func detach(v reflect.Value) {
	t := v.Type()
	shared := sharedPartsOf(t)
	switch {
	case !shared.any:
	case t.Kind() == reflect.Struct:
		for _, i := range shared.fields {
			detach(v.Field(i))
		}
	case t.Kind() == reflect.Array:
		for i := range v.Len() {
			detach(v.Index(i))
		}
	case v.IsNil():
	case t.Kind() == reflect.Pointer:
		c := reflect.New(t.Elem())
		c.Elem().Set(v.Elem())
		detach(c.Elem())
		v.Set(c)
	case t.Kind() == reflect.Slice:
		c := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(c, v)
		if sharedPartsOf(t.Elem()).any {
			for i := range c.Len() {
				detach(c.Index(i))
			}
		}
		v.Set(c)
	case t.Kind() == reflect.Map:
		c := reflect.MakeMapWithSize(t, v.Len())
		for key, e := range v.Seq2() {
			value := reflect.New(t.Elem()).Elem()
			value.Set(e)
			detach(value)
			c.SetMapIndex(key, value)
		}
		v.Set(c)
	}
}

// sharedParts says what of the values of a type detach replaces: any part, and which fields of a struct.
type sharedParts struct {
	any    bool
	fields []int
}

// knownSharedParts remembers what sharedPartsOf found, by type: a configuration may have a million subscriptions.
var knownSharedParts sync.Map

func sharedPartsOf(t reflect.Type) (s sharedParts) {
	if known, ok := knownSharedParts.Load(t); ok {
		return known.(sharedParts)
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		s.any = true
	case reflect.Pointer:
		s.any = isSetting(t.Elem())
	case reflect.Array:
		s.any = sharedPartsOf(t.Elem()).any
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() && sharedPartsOf(t.Field(i).Type).any {
				s.any, s.fields = true, append(s.fields, i)
			}
		}
	}
	knownSharedParts.Store(t, s)
	return s
}

// isSetting reports whether a value behind a pointer is a setting: one of a basic type, or a struct of this module
// all of whose fields are exported.
func isSetting(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return true
	}
	if !strings.HasPrefix(t.PkgPath(), reflect.TypeFor[Config]().PkgPath()) {
		return false
	}
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return false
		}
	}
	return true
}
