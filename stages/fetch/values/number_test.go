package values

import (
	"errors"
	"strings"
	"testing"

	"github.com/bojanz/currency"

	"github.com/vokter/vokter/pipeline"
)

// TestNumber: numbers as ten locales and more write them.
func TestNumber(t *testing.T) {
	for _, tt := range []struct{ in, tag, want, unit string }{
		{"1.299,00 €", "de", "1299.00", "EUR"},
		{"1 299,00", "fr", "1299.00", ""},
		{"1\u202f299,00 €", "fr", "1299.00", "EUR"},
		{"1\u00a0299,00 zł", "pl", "1299.00", "PLN"},
		{"$1,299.00", "en", "1299.00", "USD"},
		{"CHF 1'299.00", "de-CH", "1299.00", "CHF"},
		{"1’299.00", "de-CH", "1299.00", ""},
		{"₹1,29,900.00", "hi", "129900.00", "INR"},
		{"١٬٢٩٩٫٥٠", "ar", "1299.50", ""},
		{"۱۲۹۹", "fa", "1299", ""},
		{"R$ 1.299,90", "pt-BR", "1299.90", "BRL"},
		{"¥129,900", "ja", "129900", "JPY"},
		{"1 299 900,50 ₽", "ru", "1299900.50", "RUB"},
		{"12.345.678", "es", "12345678", ""},
		{"0.125", "de", "0.125", ""},
		{"0,1", "en", "0.1", ""},
		{"Price: 95,- only", "nl", "95", ""},
		{"US$ 12.5", "en", "12.5", "USD"},
		{"-5 °C", "en", "-5", ""},
		{"10-20", "en", "10", ""},
		{"1.299", "de", "1299", ""},      // the language decides
		{"1.299", "en", "1.299", ""},     // the language decides
		{"1,299", "en", "1299", ""},      // the language decides
		{"1,299", "de", "1.299", ""},     // the language decides
		{"1.299 €", "en", "1299", "EUR"}, // a price has no three decimal places
		{"1.299 KWD", "en", "1.299", "KWD"},
		{"$.99", "en", "0.99", "USD"},
		{"€ ,50", "de", "0.50", "EUR"},
		{"-.5", "en", "-0.5", ""},
		{"now .299 off", "de", "0.299", ""},
		{"v.2 of 10", "en", "2", ""},
		{"120 EUR, was 150", "en", "120", "EUR"},
		{"$20 CAD", "en", "20", "CAD"},
		{"TOP 10", "en", "10", ""}, // words, and currencies of Tonga and Albania
		{"ALL 20", "en", "20", ""},
		{"$20 off ALL hats", "en", "20", "USD"},
		{"TOP €19.99", "de", "19.99", "EUR"},
		{"20 of ALL", "en", "20", ""},
		{"TOP 10.50", "en", "10.50", "TOP"},
		{"ALL 1,200", "en", "1200", "ALL"},
		{"1.200 ALL", "sq", "1200", "ALL"},
		{"500ALL", "sq", "500", "ALL"},
		{"NEW 5", "en", "5", ""},
		{"BEL 2", "en", "2", ""},              // Belgium, and a franc that is no more
		{"Rs. 1,299", "en-LK", "1299", "LKR"}, // signs of several countries
		{"Only 5 left! Rs. 1,299", "en-IN", "1299", "INR"},
		{"Rs. 1,299", "si", "1299", "LKR"},
		{"Rs. 1,299", "ta", "1299", ""},
		{"1.299 DH", "fr-MA", "1299", "MAD"},
		{"120 Dhs", "en-MA", "120", "MAD"},
		{"Model P 5, ₱1,299", "en-PH", "1299", "PHP"}, // the name of an article
		{"R 1299 or US$70", "en-ZA", "1299", "ZAR"},
		{"R 999, was R 1 299,50", "en-ZA", "999", "ZAR"},
		{"1 299,– Kč 1 528,– Kč", "cs", "1299", "CZK"},
		{"1,5 tr ₫", "vi", "1500000", "VND"},
		{"1,299 DH", "fr-MA", "1299", "MAD"}, // shops there write both marks
		{"R1,299", "en-ZA", "1299", "ZAR"},
		{"R1,299.50", "en-ZA", "1299.50", "ZAR"},
		{"R 1 299,50", "en-ZA", "1299.50", "ZAR"},
		{"120 DH", "fr", "120", ""},
		{"Audi RS 3, Rs 50,000", "en-IN", "50000", "INR"},
		{"RS 1299 was RS 1999", "en-IN", "1299", "INR"},
		{"120 Kr", "nn", "120", "NOK"},
		{"Br 120", "am", "120", "ETB"},
		{"120 руб.", "ru-BY", "120", "BYN"},
		{"120 руб.", "ru", "120", "RUB"},
		{"Bs. 120", "es-VE", "120", "VES"},
		{"$120", "zh-TW", "120", "TWD"},
		{"120元", "zh-HK", "120", "HKD"},
		{"£120", "ar-SY", "120", "SYP"},
		{"120 FCFA", "fr-SN", "120", "XOF"},
		{"120 F", "fr-PF", "120", "XPF"},
		{"120 ريال", "ar-QA", "120", "QAR"},
		{"120 ريال", "ar", "120", ""},
		{"P120", "en-PH", "120", "PHP"},
		{"CFA 500 XOF", "fr", "500", "XOF"},
		{"MRU 1 200", "fr", "1200", "MRU"},
		{"1.299,50 VES", "es", "1299.50", "VES"},
		{"SLE 25", "en", "25", "SLE"},
		{"25 VED", "es", "25", "VED"},
		{"XCG 1,200", "en", "1200", "XCG"},
		{"ZWG 26.50", "en", "26.50", "ZWG"},
		{"$219. 35", "en", "219.35", "USD"}, // blanks around the point
		{"418, 29 TL", "tr", "418.29", "TRY"},
		{"2.437, 12 €", "de", "2437.12", "EUR"},
		{"€ 219 ,35", "fr", "219.35", "EUR"},
		{"46. 24", "en", "46.24", ""},
		{"1. 349 €", "en", "1349", "EUR"},
		{"10, 20 or 30 pieces", "en", "10", ""},
		{"It is $10. 20 are left", "en", "10", "USD"},
		{"$10, 20% off", "en", "10", "USD"},
		{"Dec. 24", "en", "24", ""},
		{"45€99", "fr", "45.99", "EUR"}, // a sign as the point
		{"45€ 99", "fr", "45.99", "EUR"},
		{"2350€60 TTC", "fr", "2350.60", "EUR"},
		{"35zł49", "pl", "35.49", "PLN"},
		{"5€ 10€", "de", "5", "EUR"},
		{"20 $15", "en", "15", "USD"},
		{"$20$15", "en", "20", "USD"},
		{"¥120¥50", "ja", "120", "JPY"},
		{"$.65", "en", "0.65", "USD"},
		{"$..65", "en", "0.65", "USD"},
		{"wait ...65", "en", "65", ""},
		{"2.899,-", "en", "2899", ""}, // the dash stands for the cents
		{"2.899,– kr", "en", "2899", ""},
		{"95.-", "de-CH", "95", ""},
		{"-$5", "en", "-5", "USD"},
		{"10-$20", "en", "10", "USD"},
		{"NT$2,390", "en", "2390", "TWD"}, // letters at a dollar
		{"RD$ 950", "es", "950", "DOP"},
		{"J$1,390.00", "en", "1390.00", "JMD"},
		{"TT$8", "en", "8", "TTD"},
		{"BZ$8", "en", "8", "BZD"},
		{"T$8", "en", "8", "TOP"},
		{"Z$8", "en", "8", ""},
		{"$U 1.390", "es", "1390", "UYU"},
		{"8 $CA", "fr", "8", "CAD"},
		{"HK$8", "en", "8", "HKD"},
		{"AU $8", "en", "8", "AUD"},
		{"US $8", "en", "8", "USD"},
		{"CAD $8", "en", "8", "CAD"},
		{"8 $ CAD", "en", "8", "CAD"},
		{"$8", "es-MX", "8", "MXN"},
		{"$8", "en-AU", "8", "AUD"},
		{"$8", "en-GB", "8", "USD"},
		{"AED 9000 (USD 2451)", "en", "9000", "AED"}, // the nearest one
		{"9000 (AED)", "en", "9000", "AED"},
		{"20% off, now $80", "en", "80", "USD"},
		{"-20 %  95,00 €", "de", "95.00", "EUR"},
		{"40% OFF", "en", "40", ""},
		{"$3.499 / gal", "en", "3.499", "USD"}, // both use a point
		{"1,799 €/l", "de", "1.799", "EUR"},
		{"13,499 kr", "da", "13.499", "DKK"},
		{"$1.299", "es-CL", "1299", "CLP"},
		{"¥1.299", "ja", "1299", "JPY"},
		{"1.299 €", "", "1299", "EUR"},
		{"1\u2007299,00 €", "fr", "1299.00", "EUR"},
		{"1\u200a299,00 €", "fr", "1299.00", "EUR"},
		{"1´299.00", "de-CH", "1299.00", ""},
		{"Rs. .50", "en", "0.50", ""},
		{"S/.12.50", "es-PE", "12.50", "PEN"},
		{"$1.2M", "en", "1200000", "USD"},
		{"£1.5k", "en", "1500", "GBP"},
		{"1,25 Mrd. €", "de", "1250000000", "EUR"},
		{"1.2 million", "en", "1200000", ""},
		{"1.5万円", "ja", "15000", "JPY"},
		{"95¢", "en", "0.95", ""},
		{"9.5 cents", "en", "0.095", ""},
		{"5 km", "en", "5", ""},
		{"$5 mug", "en", "5", "USD"},
		{"5 M", "en", "5", ""},
		{"EUR 95 USD 103", "en", "95", "EUR"},
		{"10 € 20 €", "de", "10", "EUR"},
		{"2.399 kr", "en", "2399", ""}, // local signs
		{"2.399 kr.", "da", "2399", "DKK"},
		{"2 399 kr", "sv", "2399", "SEK"},
		{"Rp 25.000", "en", "25000", "IDR"},
		{"2.399 Ft", "en", "2399", "HUF"},
		{"2.399 TL", "en", "2399", "TRY"},
		{"2.399 LEI", "en", "2399", "RON"},
		{"2.399 Kč", "en", "2399", "CZK"},
		{"KSh 2,399", "en", "2399", "KES"},
		{"S/. 2,399", "es", "2399", "PEN"},
		{"RM2,399", "ms", "2399", "MYR"},
		{"2.399 руб./шт", "en", "2399", "RUB"},
		{"R 2 399", "en-ZA", "2399", "ZAR"},
		{"R 12", "en", "12", ""},
		{"523.924 KD", "en", "523.924", "KWD"},
		{"523.924 د.ك", "ar", "523.924", "KWD"},
		{"523,924 DT", "fr-TN", "523.924", "TND"},
		{"5,000 KWD", "en", "5000", "KWD"},
		{"5.000 KWD", "en", "5.000", "KWD"},
		{"5.000 KWD", "", "5.000", "KWD"},
		{"12,500.250 KWD", "en", "12500.250", "KWD"},
		{"25.000 د.ع", "ar", "25000", "IQD"}, // no decimal places are in use
		{"IQD 25.000", "en", "25000", "IQD"},
		{"1.299 LBP", "en", "1299", "LBP"},
		{"95 per kr", "en", "95", ""}, // a word counts beside the number only
		{"8 €/kg", "de", "8", "EUR"},
		{"Only 2 left! €45", "en", "45", "EUR"}, // an amount counts before other numbers
		{"3 for $8", "en", "8", "USD"},
		{"6 x 4,50 €", "de", "4.50", "EUR"},
		{"Pixel 12: $700", "en", "700", "USD"},
		{"1.299 Bewertungen, 45 €", "", "45", "EUR"},
		{"2 stk. 95 kr", "da", "95", "DKK"},
		{"Was $150, now $95", "en", "150", "USD"},
		{"4 of 5 stars: was $150, now $95", "en", "150", "USD"},
		{"8-10 €", "de", "8", "EUR"}, // a range
		{"8 – 10 €", "de", "8", "EUR"},
		{"from 8 to 10 USD", "en", "8", "USD"},
		{"10 to 20 €", "en", "10", "EUR"},
		{"USD 10 - 20", "en", "10", "USD"},
		{"1.299-1.399 €", "en", "1299", "EUR"},
		{"1.299 – 1.399 €", "", "1299", "EUR"},
		{"1,299-1,399 €", "de", "1.299", "EUR"},
		{"1.299-1.399 KWD", "en", "1.299", "KWD"},
		{"2 × 8–10 €", "de", "8", "EUR"},
		{"1-2 Mio. €", "de", "1000000", "EUR"}, // with the scale behind its end
		{"1,5–2 Mio. €", "de", "1500000", "EUR"},
		{"$1-2 million", "en", "1000000", "USD"},
		{"$1.5-2M", "en", "1500000", "USD"},
		{"1.5-2k €", "en", "1500", "EUR"},
		{"€5 to 6k", "en", "5000", "EUR"},
		{"5-6 тыс. руб.", "ru", "5000", "RUB"},
		{"от 5 до 6 млн руб.", "ru", "5000000", "RUB"},
		{"3–4 lakh ₹", "en", "300000", "INR"},
		{"₹3-4 crore", "en", "30000000", "INR"},
		{"5-10 thousand", "en", "5000", ""},
		{"3〜4万円", "ja", "30000", "JPY"},
		{"150k-200k VND", "vi", "150000", "VND"},
		{"1 Mio. bis 2 Mio. €", "de", "1000000", "EUR"},
		{"900 Tsd. - 1,2 Mio. €", "de", "900000", "EUR"},
		{"50-60 cents", "en", "0.5", ""},
		{"2.399-2.499 lei", "en", "2399", "RON"},
		{"2.399 – 2.499 Ft", "en", "2399", "HUF"},
		{"1.299-€1.399", "en", "1299", "EUR"},
		{"10 to USD 20", "en", "10", "USD"},
		{"1.899-1.999,- €", "en", "1899", "EUR"},
		{"€1.299 - €1.399", "en", "1299", "EUR"},
		{"$10 - $20 CAD", "en", "10", "CAD"},
		{"10-20% off, €5", "en", "5", "EUR"},
		{"Mobil 900 - 20 €", "de", "20", "EUR"}, // no range
		{"2024-11-28 €5", "en", "5", "EUR"},
		{"ID 77 50 €", "de", "50", "EUR"}, // no hundredths
		{"ID 77 €", "de", "77", "EUR"},
		{"KD 3€50", "fr", "3.50", "EUR"},
		{"5 тыс. руб.", "ru", "5000", "RUB"}, // words of scale
		{"5 тысяч рублей", "ru", "5000", "RUB"},
		{"1,5 млн ₽", "ru", "1500000", "RUB"},
		{"3 lakh ₹", "en", "300000", "INR"},
		{"₹1.5 Cr", "en", "15000000", "INR"},
		{"$5m", "en", "5000000", "USD"},
		{"5 mil €", "es", "5000", "EUR"},
		{"5 mil millones de €", "es", "5000000000", "EUR"},
		{"R$ 5 mil", "pt-BR", "5000", "BRL"},
		{"5 mil. Kč", "cs", "5000000", "CZK"},
		{"1,5 milionu Kč", "cs", "1500000", "CZK"},
		{"5 tys. zł", "pl", "5000", "PLN"},
		{"5 bin TL", "tr", "5000", "TRY"},
		{"Rp 1,5 juta", "id", "1500000", "IDR"},
		{"Rp50rb", "id", "50000", "IDR"},
		{"5 triệu đồng", "vi", "5000000", "VND"},
		{"5 ล้านบาท", "th", "5000000", "THB"},
		{"5천원", "ko", "5000", "KRW"},
		{"5百万円", "ja", "5000000", "JPY"},
		{"1.5 billion USD", "en", "1500000000", "USD"},
		{"1,5 Billionen €", "de", "1500000000000", "EUR"},
		{"450 TEUR", "de", "450000", "EUR"},
		{"450 T€", "de", "450000", "EUR"},
		{"3 MEUR", "en", "3000000", "EUR"},
		{"2 milliards d'euros", "fr", "2000000000", "EUR"},
		{"2 milioni di euro", "it", "2000000", "EUR"},
		{"2 millones de euros", "es", "2000000", "EUR"},
		{"1080p", "en", "1080", ""},
		{"€5 bin", "en", "5", "EUR"},
		{"5 mil bags, $9", "en", "9", "USD"},
		{"8 people, ID 5, room 3 lei", "en", "8", ""}, // words that may be currencies are none here
		{"ID 77 €5", "en", "5", "EUR"},                // and here they are part of a name
		{"Article ID 77 €5", "en", "5", "EUR"},
		{"ID: 77 €5", "en", "5", "EUR"},
		{"Article ID: 77 (€5)", "en", "5", "EUR"},
		{"Model KD 3 €5", "en", "5", "EUR"},
		{"Model KD 3 - €5", "en", "5", "EUR"},
		{"LE 5 €9", "en", "9", "EUR"},
		{"KD 3", "en", "3", "KWD"},
		{"KD 3 (€9)", "en", "3", "KWD"},
		{"KD 3.500 €10", "en", "3.500", "KWD"},
		{"RM2,399 $500", "en", "2399", "MYR"},
		{"Rs. 500 ($6)", "en-IN", "500", "INR"},
		{"3万4500円", "ja", "34500", "JPY"},
		{"2億3,000万円", "ja", "230000000", "JPY"},
		{"1억 2000만 원", "ko", "120000000", "KRW"},
		{"3만 5천원", "ko", "35000", "KRW"},
		{"3만5천5백원", "ko", "35500", "KRW"},
		{"3천5백만 원", "ko", "35000000", "KRW"},
		{"5천 5백원", "ko", "5500", "KRW"},
		{"3만 5,000원", "ko", "35000", "KRW"},
		{"5천 3개", "ko", "5000", ""},
		{"3千5百円", "ja", "3500", "JPY"},
		{"1万12800円", "ja", "12800", "JPY"},
		{"2亿3千万元", "zh", "230000000", "CNY"},
		{"17:95 kr", "sv", "17.95", "SEK"}, // a colon as the point
		{"1 299:50 kr", "sv", "1299.50", "SEK"},
		{"€ 12:50", "de", "12.50", "EUR"},
		{"kl 17:50, 95 kr", "sv", "95", "SEK"},
		{"18:30 Uhr, 12 €", "de", "12", "EUR"},
		{"18:30 $20", "en", "20", "USD"},
		{"25 руб. 5 коп.", "ru", "25.05", "RUB"}, // hundredths by their name
		{"1 299 руб 50 копеек", "ru", "1299.50", "RUB"},
		{"5 € und 20 Cent", "de", "5.20", "EUR"},
		{"£5 50p", "en", "5.50", "GBP"},
		{"12 zł 99 gr", "pl", "12.99", "PLN"},
		{"$5, 50 pieces", "en", "5", "USD"},
		{"€ 17 95", "de", "17.95", "EUR"}, // a blank as the point
		{"17 95 zł", "pl", "17.95", "PLN"},
		{"size 42 95 €", "de", "95", "EUR"},
		{"17 95", "de", "17", ""},
		{"17\u206395 €", "de", "17.95", "EUR"}, // elements of their own
		{"€1.299\u206395", "de", "1299.95", "EUR"},
		{"€17\u206395\u2063 inkl. MwSt.", "de", "17.95", "EUR"},
		{"17\u206395 Kč", "cs", "17.95", "CZK"},
		{"17\u206395円", "ja", "1795", "JPY"},
	} {
		n, unit, err := findNumber(tt.in, tt.tag, "")
		if err != nil || n != tt.want || unit != tt.unit {
			t.Errorf("%q in %q: got %q %q (%v), want %q %q", tt.in, tt.tag, n, unit, err, tt.want, tt.unit)
		}
	}
	for _, in := range []string{"", "sold out", "1,2,3", "1.29.9,00", "12,34.5678,9", "1e3 $"} {
		if n, _, err := findNumber(in, "en", ""); err == nil {
			t.Errorf("%q: got %q", in, n)
		}
	}
	// Nobody knows whether it is a thousand times as large.
	for in, tag := range map[string]string{"1.299": "", "12,345": "", "$1.299": "", "1,799 €": "", "1,299-1,399 €": "", "5,000 KWD": "", "5.000 KWD": "de", "1.250 TND": "en", "1.250 DT": "fr", "€1,299": "fr", "kr 1,299": "sv"} {
		if n, _, err := findNumber(in, tag, ""); !errors.Is(err, errUndecided) {
			t.Errorf("%q: got %q, %v", in, n, err)
		}
	}
	// Nor whether a scale or a currency is that of the first number, too, or how large it is.
	for in, tag := range map[string]string{
		"1.299 - €1.399": "en", "Phone 12 - $700": "en", "Phone 12 - 700 €": "en", "500-1k €": "en", "$1 - $2 million": "en", "$0.50-95 cents": "en", "5 m €": "en",
		"€5 m": "en", "5 mil €": "", "₹ 45 L": "en", "50p": "en", "99 ct": "de", "$1.5 billion": "",
	} {
		if n, _, err := findNumber(in, tag, ""); !errors.Is(err, errScale) {
			t.Errorf("%q: got %q, %v", in, n, err)
		}
	}
	if n, _, err := findNumber("1,299-1,399.50 €", "de", ""); !errors.Is(err, errUndecided) {
		t.Errorf("got %q, %v", n, err)
	}
	// Nor whether it is a hundred times as large.
	for _, in := range []string{"17\u206395", "17\u206395 visitors", "17\u206395 KWD", "$17\u206395h", "$17\u206395 left", "17\u206395 of 20\u206300, $5\u206300 KD"} {
		if n, _, err := findNumber(in, "en", ""); !errors.Is(err, errSplit) {
			t.Errorf("%q: got %q, %v", in, n, err)
		}
	}
}

// FuzzNumber holds that a number that is found is one, is found again where it is written plainly, and has a currency
// that exists.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"1.29'9", "1.299,00 €", "$.75", "35€99", "119. 95 TL", "CHF 1'299.–", "-20 % 95,00 €", "95¢", "1,25 Mrd. €", "١٬٢٩٩٫٥٠"} {
		f.Add(s, "de")
	}
	f.Fuzz(func(t *testing.T, s, tag string) {
		n, unit, err := findNumber(s, tag, "")
		if err != nil {
			return
		}
		if !pipeline.IsNumber(n) || unit != "" && !currency.IsValid(unit) {
			t.Fatalf("%q: got %q %q", s, n, unit)
		}
		if again, _, err := findNumber(n, "en", "USD"); err != nil || !sameAmount(again, n) && !strings.Contains(n, ".") {
			t.Errorf("%q: %q is read as %q (%v)", s, n, again, err)
		}
	})
}

// FuzzOffer holds that no page makes a price that is no number.
func FuzzOffer(f *testing.F) {
	f.Add(`<script type="application/ld+json">{"@type":"Offer","price":"95.00","priceSpecification":[{"priceType":"ListPrice","price":1e3}],}</script>`)
	f.Add(`<p itemscope itemtype="http://schema.org/Offer" itemref=a><b itemprop=price><s>9</s>8<sup>50</sup> €</b></p><i id=a itemprop=availability>in stock`)
	f.Fuzz(func(t *testing.T, body string) {
		raw := pipeline.Raw{ContentType: "text/html", Body: []byte(body)}
		got, err := extract(t, pipeline.Value{Offer: pipeline.OfferPrice}, raw, pipeline.Text{Language: "en"}, false)
		if number, _, _ := strings.Cut(strings.TrimSpace(got), " "); err == nil && !pipeline.IsNumber(number) {
			t.Errorf("%q: got %q", body, got)
		}
	})
}
