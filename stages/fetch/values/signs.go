package values

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/bojanz/currency"
	"golang.org/x/text/language"
)

// symbols are the signs of currencies that are no letters, without those of dollars, pounds and yen.
var symbols = map[rune]string{
	'€': "EUR", '₹': "INR", '₽': "RUB", '₩': "KRW", '￦': "KRW", '₺': "TRY", '₴': "UAH", '₪': "ILS", '₫': "VND", '฿': "THB", '₦': "NGN", '₱': "PHP",
	'₡': "CRC", '₲': "PYG", '₵': "GHS", '₸': "KZT", '₮': "MNT", '₭': "LAK", '៛': "KHR", '₼': "AZN", '₾': "GEL", '֏': "AMD", '৳': "BDT", '؋': "AFN",
	'₨': "", '﷼': "", '₤': "", '₣': "", 'ƒ': "", '₿': "", 'Ƀ': "", '₶': "",
}

// prefixes are the letters that stand at the signs of dollars, pounds and yen: before them, or behind as in $CA. A
// sign with other letters is a currency of which the code is not known.
var prefixes = map[rune]map[string]string{
	'$': {
		"": "USD", "US": "USD", "UY": "UYU", "A": "AUD", "AU": "AUD", "C": "CAD", "CA": "CAD", "CAN": "CAD", "CDN": "CAD", "NZ": "NZD", "HK": "HKD",
		"S": "SGD", "SG": "SGD", "R": "BRL", "BR": "BRL", "MX": "MXN", "MEX": "MXN", "NT": "TWD", "RD": "DOP", "J": "JMD", "JA": "JMD", "JM": "JMD", "TT": "TTD",
		"BZ": "BZD", "T": "TOP", "BDS": "BBD", "EC": "XCD", "FJ": "FJD", "G": "GYD", "GY": "GYD", "L": "LRD", "LD": "LRD", "N": "NAD", "NA": "NAD", "SI": "SBD",
		"SB": "SBD", "WS": "WST", "CI": "KYD", "KY": "KYD", "MOP": "MOP", "BS": "BSD", "BM": "BMD", "BN": "BND", "AR": "ARS", "CL": "CLP", "CLP": "CLP", "COL": "COP",
		"CO": "COP", "SR": "SRD", "TW": "TWD",
	},
	'£': {"": "GBP", "GB": "GBP", "UK": "GBP", "E": "EGP", "EG": "EGP", "L": "LBP", "LB": "LBP", "S": "SYP", "SY": "SYP"},
	'¥': {"": "JPY", "JP": "JPY", "CN": "CNY", "RMB": "CNY"},
}

// signs are the signs and words for currencies that shops write and the CLDR does not have, or has for one language
// only. Words of three letters and more stand in small letters, and are found in others, too.
var signs = map[string]string{
	"$U": "UYU", "$b": "BOB", "kr": "", "Kr": "", "KR": "", "skr": "SEK", "nkr": "NOK", "dkr": "DKK", "ikr": "ISK", "Rp": "IDR", "Ft": "HUF", "TL": "TRY", "lei": "RON", "leu": "RON",
	"Kč": "CZK", "kč": "CZK", "Kc": "CZK", "zł": "PLN", "Zł": "PLN", "ZŁ": "PLN", "zl": "PLN", "KD": "KWD", "K.D": "KWD", "JD": "JOD", "J.D": "JOD", "BD": "BHD", "B.D": "BHD",
	"LD": "LYD", "DT": "TND", "ID": "IQD", "R.O": "OMR", "RM": "MYR", "Rs": "", "Re": "", "Tk": "BDT", "ksh": "KES", "kshs": "KES", "tsh": "TZS", "ush": "UGX", "Br": "",
	"лв": "BGN", "руб": "RUB", "рублей": "RUB", "р": "RUB", "Р": "RUB", "грн": "UAH", "hrn": "UAH", "тг": "KZT", "тенге": "KZT", "ден": "MKD", "din": "RSD", "дин": "RSD", "рсд": "RSD",
	"dinara": "RSD", "динара": "RSD", "KM": "", "КМ": "", "kn": "", "lek": "ALL", "lekë": "ALL", "сом": "KGS", "сум": "UZS", "som": "", "so'm": "UZS", "soʻm": "UZS", "lari": "GEL", "ლ": "GEL",
	"ლარი": "GEL", "Dhs": "AED", "dhs": "AED", "Dh": "", "DH": "", "SR": "SAR", "QR": "QAR", "LE": "EGP", "L.E": "EGP", "DA": "DZD", "FCFA": "", "CFA": "", "CFPF": "XPF", "FCFP": "XPF",
	"Fr": "CHF", "sfr": "CHF", "Bs": "", "Bs.S": "VES", "S/": "PEN", "B/": "PAB", "Gs": "PYG", "Nu": "BTN", "Kz": "AOA", "MT": "MZN", "đ": "VND", "vnđ": "VND", "đồng": "VND",
	"บาท": "THB", "php": "PHP", "nis": "ILS", "ש\"ח": "ILS", "ש״ח": "ILS", "ש'ח": "ILS", "Af": "", "Esc": "", "MK": "MWK", "Rf": "MVR", "FG": "GNF", "RF": "RWF", "FRw": "RWF", "fbu": "BIF", "fdj": "DJF",
	"eur": "EUR", "euro": "EUR", "euros": "EUR", "evro": "EUR", "евро": "EUR", "ευρώ": "EUR", "usd": "USD", "gbp": "GBP", "chf": "CHF", "sek": "SEK", "nok": "NOK", "dkk": "DKK", "pln": "PLN", "czk": "CZK",
	"huf": "HUF", "uah": "UAH", "inr": "INR", "aud": "AUD", "nzd": "NZD", "brl": "BRL", "mkd": "MKD", "dollar": "", "dollars": "", "franc": "", "francs": "", "yen": "JPY",
	"円": "JPY", "元": "CNY", "圆": "CNY", "圓": "", "yuan": "CNY", "rmb": "CNY", "人民币": "CNY", "원": "KRW",
	"د.ك": "KWD", "دينار كويتي": "KWD", "د.ب": "BHD", "ر.ع": "OMR", "د.أ": "JOD", "د.ا": "JOD", "د.ت": "TND", "د.ل": "LYD", "ل.د": "LYD", "د.ع": "IQD", "ع.د": "IQD", "د.إ": "AED",
	"ر.س": "SAR", "ر.ق": "QAR", "ج.م": "EGP", "د.م": "MAD", "د.ج": "DZD", "دج": "DZD", "ل.ل": "LBP", "ل.س": "SYP", "ر.ي": "YER", "ج.س": "SDG", "ریال": "IRR", "تومان": "", "جنيه": "", "درهم": "", "ريال": "",
}

// localSigns are the signs by which the countries of the CLDR write their currencies. One letter is none: "R 12" and
// "K 4" are names, unless the language of the page is that of a country that writes so.
var localSigns = sync.OnceValue(func() map[string]string {
	all := make(map[string]string)
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			sign, code := signOf(language.Make("und-" + string(a) + string(b)))
			ascii := strings.Trim(sign, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
			if sign == code || ascii && len(sign) < 3 || utf8.RuneCountInString(sign) < 2 || strings.ContainsAny(sign, "$£¥") {
				continue
			}
			if other, taken := all[sign]; taken && other != code {
				code = ""
			}
			all[sign] = code
		}
	}
	return all
})

// signOf returns the sign of the currency in the country of a language, and its code. Both are empty if there is none.
func signOf(tag language.Tag) (sign, code string) {
	base, _ := tag.Base()
	region, _ := tag.Region()
	code, _ = currency.ForCountryCode(region.String())
	sign, _ = currency.GetSymbol(code, currency.NewLocale(base.String()+"-"+region.String()))
	return strings.TrimRight(plainDigits(sign), "."), code
}

// Currencies that share a sign.
const (
	crowns  = "SEK NOK DKK ISK"
	rupees  = "INR PKR LKR NPR MUR SCR"
	dirhams = "AED MAD"
	francs  = "XOF XAF XPF BIF CDF DJF GNF KMF RWF"
	yuan    = "CNY TWD HKD MOP"
	dollars = "USD AUD BBD BMD BND BSD BZD CAD FJD GYD HKD JMD KYD LRD NAD NZD SBD SGD SRD TTD TWD XCD"
	pesos   = "MXN ARS CLP COP CUP DOP UYU"
)

// sharedSigns are signs of several countries, or that elsewhere are none, and the currencies that they may stand for:
// the one of the country in the language of the page, if it is one of them.
var sharedSigns = func() map[string]string {
	all := make(map[string]string)
	for signs, codes := range map[string]string{
		"kr Kr KR": crowns, "Rs RS rs Re ₨ rupee rupees": rupees, "रु रू": "INR NPR", "Dh DH dh Dhs DHS dhs درهم": dirhams,
		"F f": francs, "Fr franc francs": francs + " CHF", "FCFA CFA": "XOF XAF", "元 圆 圓": yuan, "$ dollar dollars": dollars + " " + pesos,
		"peso pesos": pesos + " PHP", "B$": "BND BSD", "£": "EGP FKP GIP LBP SDG SHP SSP SYP", "¥": "JPY CNY", "Br BR br": "ETB BYN",
		"Bs BS bs": "BOB VES", "руб рублей р Р": "RUB BYN", "lei Lei LEI leu": "RON MDL", "som сом": "KGS TJS UZS", "с": "KGS TJS", "man ман": "AZN TMT",
		"Sh sh Shs shs": "KES SOS TZS UGX", "P": "BWP PHP", "N": "NGN", "LL L.L": "LBP", "Ar": "MGA", "UM": "MRU", "Esc": "CVE", "Af": "AFN",
		"ريال ﷼": "SAR IRR OMR QAR YER", "جنيه": "EGP SDG SSP", "دينار": "BHD DZD IQD JOD KWD LYD TND", "ليرة": "LBP SYP TRY",
	} {
		for sign := range strings.FieldsSeq(signs) {
			all[sign] = codes
		}
	}
	return all
}()

// words are signs of sharedSigns that are words where they are signs, too.
var words = []string{"Re", "lei", "Lei", "LEI", "leu", "som", "сом", "man", "ман"}

// manyCountries are the languages of which no country is the likely one.
var manyCountries = []string{"ar", "de", "en", "es", "fr", "pt", "ru", "sw", "ta", "zh"}

// sharedCode returns the currency of the country of a language, if sign may stand for it, or else "".
func sharedCode(sign string, tag language.Tag) string {
	region, confidence := tag.Region()
	if base, _ := tag.Base(); confidence != language.Exact && slices.Contains(manyCountries, base.String()) {
		return ""
	}
	if code, ok := currency.ForCountryCode(region.String()); ok && strings.Contains(sharedSigns[sign], code) {
		return code
	}
	return ""
}

// findSign returns the currency of a sign on a page in the language tag.
func findSign(sign, tag string) foundCurrency {
	code, ok := codeOfSign(sign, tag)
	return foundCurrency{found: ok, code: code, sign: sign}
}

func codeOfSign(sign, tag string) (code string, ok bool) {
	if t, err := language.Parse(tag); err == nil {
		if s, code := signOf(t); s != "" && s == sign {
			return code, true
		}
		if code := sharedCode(sign, t); code != "" {
			return code, true
		}
	}
	for _, known := range []string{sign, strings.ToLower(sign)} {
		if code, ok := signs[known]; ok && (known == sign || utf8.RuneCountInString(sign) > 2) {
			return code, true
		}
	}
	for _, r := range sign {
		code, ok := symbols[r]
		if codes := prefixes[r]; codes != nil {
			letters := strings.ToUpper(strings.ReplaceAll(sign, string(r), ""))
			if code, ok = codes[letters], true; isCode(letters) {
				code = letters
			}
		}
		if ok {
			return code, true
		}
	}
	code, ok = localSigns()[sign]
	return code, ok
}
