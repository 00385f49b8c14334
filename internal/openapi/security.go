package openapi

// Credentials says what callers send to show who they are.
type Credentials int32

// What callers send. The zero is nothing.
const (
	NoCredentials Credentials = iota
	OptionalCredentials
	NeededCredentials
)

// security is what a document says of credentials.
type security struct {
	kind    string // of the document, among those of the same view
	wanted  []byte // the member of the document
	schemes []byte // the member of its components
}

// schemes are the two credentials that there are.
var schemes = []byte(`"securitySchemes":{` +
	`"bearer":{"type":"http","scheme":"bearer","description":"An API key, or a token of an issuer that the service trusts."},` +
	`"apiKey":{"type":"apiKey","in":"header","name":"X-API-Key","description":"An API key."}}`)

// securities are those of documents, by what callers send.
var securities = map[Credentials]security{
	OptionalCredentials: {kind: " open", wanted: []byte(`"security":[{},{"bearer":[]},{"apiKey":[]}]`), schemes: schemes},
	NeededCredentials:   {kind: " secured", wanted: []byte(`"security":[{"bearer":[]},{"apiKey":[]}]`), schemes: schemes},
}

func (o *Options) security() security {
	if o.Credentials == nil {
		return security{}
	}
	return securities[o.Credentials()]
}
