package restless

import (
	"strconv"
	"strings"
	"time"
)

// timeAt returns the date, time of day or duration that begins with piece i, and the piece behind it. It
// takes in the words that change with it: names of days and months, and units.
func (r *reader) timeAt(i int) (n number, end int, ok bool) {
	if !r.is(i, digits) {
		if !r.is(i, letters) {
			return number{}, 0, false
		}
		word := timeWords.of(r.text(i))
		if word&article != 0 {
			if n, end, ok := r.articleAt(i); ok {
				return n, end, true
			}
		}
		if word&(dayName|monthName) == 0 {
			return number{}, 0, false
		}
	}
	n.kind = kindTime
	var date dateParts
	var age, unit time.Duration
	for j := i; ; {
		switch {
		case r.is(j, letters) && isDay(r.text(j)) && !ok:
			j++
		case r.is(j, letters) && isMonth(r.text(j)) && (end == j || r.is(r.skip(j+1), digits)):
			j++
			date.month = true
			if ok {
				end = j
			}
		case r.is(j, digits):
			next, span, u, fits := r.timeElement(j, &date)
			if !fits {
				return r.withAge(n, i, end, age, unit), end, ok
			}
			j, end, ok = next, next, true
			if age += span; u > 0 {
				unit = u
			}
			if isMonth(r.text(r.skip(j))) {
				j = r.skip(j)
				end = j
			}
			if isHalfOfDay(r.text(j)) {
				j, end = j+1, j+1
			}
		default:
			return r.withAge(n, i, end, age, unit), end, ok
		}
		j = r.skip(j)
	}
}

// timeElement returns the piece behind the part of a date, a time of day or a duration that the word j
// begins, and for a duration its length and unit.
func (r *reader) timeElement(j int, date *dateParts) (end int, span, unit time.Duration, ok bool) {
	end = r.chain(j)
	word := r.s[r.ps[j].start:r.ps[end-1].end]
	if end == j+1 {
		if span, unit, ok := compact(word); ok {
			return end, span, unit, true
		}
	}
	if u := units.of(r.text(end)); u > 0 && (len(r.text(end)) > 1 || r.is(end+1, digits) || j > 0 && r.is(j-1, letters) && len(r.text(j-1)) == 1) {
		n, err := strconv.ParseFloat(strings.ReplaceAll(word, ",", "."), 64)
		if err != nil {
			n = 1
		}
		return end + 1, time.Duration(n * float64(u)), u, true
	}
	isTime := strings.Contains(word, ":")
	isDate := strings.Count(word, "-") == 2 || strings.Count(word, "/") == 2 || strings.Count(word, ".") == 2 && isDecimal(strings.ReplaceAll(word, ".", ""))
	return end, 0, 0, isTime || isDate || date.takes(word, isMonth(r.text(r.skipDot(end))))
}

// dateParts are the parts of a date with the name of its month that were read.
type dateParts struct{ day, month, year bool }

// takes reports whether word is the day or the year of the date. beforeMonth says that the month follows.
func (d *dateParts) takes(word string, beforeMonth bool) bool {
	if !isDecimal(word) || !d.month && !beforeMonth {
		return false
	}
	switch {
	case len(word) <= 2 && !d.day:
		d.day = true
	case len(word) == 4 && d.month && !d.year:
		d.year = true
	default:
		return false
	}
	return true
}

// compact reads a duration of one word, such as "3h".
func compact(word string) (span, unit time.Duration, ok bool) {
	k := 0
	for k < len(word) && isDigit(word[k]) {
		k++
	}
	if k == 0 || k == len(word) || k > 6 {
		return 0, 0, false
	}
	u := units.of(word[k:])
	n, err := strconv.Atoi(word[:k])
	return time.Duration(n) * u, u, u > 0 && err == nil
}

// articleAt returns a duration such as "an hour" in "an hour ago" that begins with the article i.
func (r *reader) articleAt(i int) (n number, end int, ok bool) {
	u := units.of(r.text(i + 1))
	if u == 0 || len(r.text(i+1)) == 1 {
		return n, 0, false
	}
	n = r.withAge(number{kind: kindTime}, i, i+2, u, u)
	return n, i + 2, n.age > 0
}

// withAge sets the age of n, which has the pieces from to end, if words beside it say that it is one.
func (r *reader) withAge(n number, from, end int, age, unit time.Duration) number {
	if age == 0 {
		return n
	}
	before := strings.ToLower(r.text(from - 1))
	switch {
	case timeWords.of(r.text(end))&agoBehind != 0, before == "vor", before == "hace", before == "há",
		before == "a" && strings.EqualFold(r.text(from-2), "y") && strings.EqualFold(r.text(from-3), "il"):
		n.age, n.unit = age, unit
	}
	return n
}

// skip returns the first piece from i on that is no comma, point or word between the parts of a date or
// a duration.
func (r *reader) skip(i int) int {
	for i < len(r.ps) && (r.is(i, sign) && strings.Contains(",.-–", r.text(i)) || r.is(i, letters) && timeWords.of(r.text(i))&join != 0) {
		i++
	}
	return i
}

func (r *reader) skipDot(i int) int {
	if r.text(i) == "." {
		return i + 1
	}
	return i
}

// explains reports whether the time between two checks explains that an age grew from old to new.
func explains(between time.Duration, old, new number) bool {
	return old.age > 0 && new.age > 0 && new.age >= old.age-new.unit && new.age-old.age <= between+old.unit+new.unit && (new.age >= old.age || new.unit >= old.unit)
}

func isDay(s string) bool { return timeWords.of(s)&dayName != 0 }

func isMonth(s string) bool { return timeWords.of(s)&monthName != 0 }

// timeWord says what a word can be in a date or a duration.
type timeWord uint8

const (
	dayName timeWord = 1 << iota
	monthName
	article
	agoBehind
	join // stands between the parts of a date or a duration
)

func isHalfOfDay(s string) bool {
	return len(s) == 2 && (strings.EqualFold(s, "am") || strings.EqualFold(s, "pm"))
}

const day = 24 * time.Hour

// The words of times, in small letters: English, German, French, Spanish, Italian, Portuguese and Dutch.
var (
	timeWords = lexiconOf(map[timeWord]string{
		dayName: `mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday sunday mo
			di mi do fr sa so montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag lun mar mer jeu
			ven sam dim lundi mardi mercredi jeudi vendredi samedi dimanche mié jue vie sáb dom lunes martes
			miércoles jueves viernes sábado domingo gio lunedì martedì mercoledì giovedì venerdì sabato domenica seg
			ter qua qui sex segunda terça quarta quinta sexta maandag dinsdag woensdag donderdag vrijdag zaterdag
			zondag`,
		monthName: `jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june july august
			september october november december mär mrz mai okt dez januar jänner februar märz juni juli oktober
			dezember janv févr fév avr juin juil août aoû déc janvier février mars avril juillet septembre octobre
			novembre décembre ene abr dic enero febrero marzo abril mayo junio julio agosto septiembre octubre
			noviembre diciembre gen mag giu lug set ott gennaio febbraio aprile maggio giugno luglio settembre
			ottobre dicembre fev out dez janeiro fevereiro março maio junho julho setembro outubro novembro dezembro
			januari februari maart mei augustus`,
		article:   `a an one ein eine einer einem un une una uno um uma een`,
		agoBehind: `ago fa geleden atrás sedan siden`,
		join:      `and und et e y en at um à alle às om uhr of de`,
	})
	units = lexiconOf(map[time.Duration]string{
		time.Second: `s sec secs second seconds sek sekunde sekunden seconde secondes segundo segundos secondo secondi seconden`,
		time.Minute: `m min mins minute minutes minuten minuto minutos minuti minuut`,
		time.Hour:   `h hr hrs hour hours std stunde stunden heure heures hora horas ora ore uur`,
		day:         `d day days tag tage tagen jour jours día días giorno giorni dia dias dag dagen`,
		7 * day:     `w wk week weeks woche wochen semaine semaines semana semanas settimana settimane weken`,
		30 * day:    `mo month months monat monate monaten mois mes meses mese mesi mês maand maanden`,
		365 * day:   `y yr yrs year years jahr jahre jahren ans année années año años anno anni ano anos jaar`,
	})
)

// Touches reports whether a difference in a restless place can add or remove a word of the keyword.
func Touches(keyword string) bool {
	for _, p := range appendPieces(nil, keyword) {
		if p.kind == digits {
			return true
		}
		if w := strings.ToLower(keyword[p.start:p.end]); p.kind == letters && (units.of(w) > 0 || timeWords.of(w)&^agoBehind != 0 || isHalfOfDay(w)) {
			return true
		}
	}
	return false
}
