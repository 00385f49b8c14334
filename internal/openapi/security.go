package openapi

// security is what a document says of credentials.
type security struct {
	kind    string // of the document, among those of the same view
	wanted  []byte // the member of the document
	schemes []byte // the member of its components
}

// secured is the security of a service whose callers need one of two credentials.
var secured = security{
	kind:   " secured",
	wanted: []byte(`"security":[{"bearer":[]},{"apiKey":[]}]`),
	schemes: []byte(`"securitySchemes":{` +
		`"bearer":{"type":"http","scheme":"bearer","description":"An API key, or a token of an issuer that the service trusts."},` +
		`"apiKey":{"type":"apiKey","in":"header","name":"X-API-Key","description":"An API key."}}`),
}

func (o *Options) security() security {
	if o.Secured != nil && o.Secured() {
		return secured
	}
	return security{}
}
