package fetch

import "testing"

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
		{"1.299", "", "1299", ""},        // nothing is known: groups of three
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
		{"BEL 2", "en", "2", ""}, // Belgium, and a franc that is no more
		{"CFA 500 XOF", "fr", "500", "XOF"},
		{"MRU 1 200", "fr", "1200", "MRU"},
		{"1.299,50 VES", "es", "1299.50", "VES"},
		{"SLE 25", "en", "25", "SLE"},
		{"25 VED", "es", "25", "VED"},
		{"XCG 1,200", "en", "1200", "XCG"},
		{"ZWG 26.50", "en", "26.50", "ZWG"},
	} {
		n, unit, ok := findNumber(tt.in, tt.tag)
		if !ok || n != tt.want || unit != tt.unit {
			t.Errorf("%q in %q: got %q %q %v, want %q %q", tt.in, tt.tag, n, unit, ok, tt.want, tt.unit)
		}
	}
	for _, in := range []string{"", "sold out", "1,2,3", "1.29.9,00", "12,34.5678,9"} {
		if n, _, ok := findNumber(in, "en"); ok {
			t.Errorf("%q: got %q", in, n)
		}
	}
}
