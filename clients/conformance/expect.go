package main

import "strings"

// An exception is a scenario that does not apply to a bridge, and why. All others pass.
type exception struct {
	role     role
	scenario string
	version  string // "" is every one
	why      string
	checks   []string // of the scenario that do not apply, in order, where the others do and pass; nil is all
}

func (e exception) text() string {
	if e.checks == nil {
		return e.why
	}
	return "All but `" + strings.Join(e.checks, "`, `") + "`. " + e.why
}

// Reasons that several scenarios share.
const (
	noSampling   = "A bridge has no model of its own and no roots, and offers servers neither; both are deprecated since 2026-07-28. What a server asks people is passed on."
	noSubscribe  = "`resources.subscribe` is not declared: clients hear of changed lists, and read what they want anew."
	noTasks      = "The extension is not declared. Over HTTP, long calls are jobs."
	noSkills     = "The extension is not declared, so that the suite finds nothing to check."
	needsBrowser = "The bridge gets its tokens by client credentials, as a machine does; this is about people who log in through a browser."
	noGrant      = "The bridge's only grant is that of client credentials, by a secret or by a signed assertion."
)

var exceptions = []exception{
	{asServer, "tools-call-sampling", "", noSampling, nil},
	{asServer, "input-required-result-basic-sampling", "", noSampling, nil},
	{asServer, "input-required-result-basic-list-roots", "", noSampling, nil},
	{asServer, "input-required-result-multiple-input-requests", "", noSampling, nil},
	{asServer, "input-required-result-capability-check", "", noSampling, nil},
	{asServer, "resources-subscribe", "", noSubscribe, nil},
	{asServer, "resources-unsubscribe", "", noSubscribe, nil},
	{asServer, "server-sse-polling", "", "Streams of `/mcp` cannot be resumed: who hangs up cancels the call. The SDK's server gives its events no ids, so that the bridge cannot resume its stream either.", nil},
	{asServer, "sep-2640-skills-directory", "", noSkills, nil},
	{asServer, "sep-2640-skills-enumeration", "", noSkills, nil},
	{asServer, "sep-2640-skills-manifest", "", noSkills, nil},
	{asServer, "tasks-lifecycle", "", noTasks, nil},
	{asServer, "tasks-capability-negotiation", "", noTasks, nil},
	{asServer, "tasks-wire-fields", "", noTasks, nil},
	{asServer, "tasks-request-state-removal", "", noTasks, nil},
	{asServer, "tasks-mrtr-input", "", noTasks, nil},
	{asServer, "tasks-request-headers", "", noTasks, nil},
	{asServer, "tasks-dispatch-and-envelope", "", noTasks, nil},
	{asServer, "tasks-status-notifications", "", noTasks, nil},
	{asServer, "tasks-required-task-error", "", noTasks, nil},
	{asServer, "tasks-mrtr-composition", "", noTasks, nil},
	{asClient, "auth/metadata-default", "", needsBrowser, []string{"authorization-request", "client-registration", "resource-parameter-in-authorization"}},
	{asClient, "auth/metadata-var1", "", needsBrowser, []string{"authorization-request", "client-registration", "resource-parameter-in-authorization"}},
	{asClient, "auth/metadata-var2", "", needsBrowser, []string{"authorization-request", "client-registration", "resource-parameter-in-authorization"}},
	{asClient, "auth/metadata-var3", "", needsBrowser, []string{"authorization-request", "client-registration", "resource-parameter-in-authorization"}},
	{asClient, "auth/basic-cimd", "", needsBrowser, []string{"cimd-client-id-used"}},
	{asClient, "auth/scope-from-www-authenticate", "", needsBrowser, []string{"scope-from-www-authenticate"}},
	{asClient, "auth/scope-from-scopes-supported", "", needsBrowser, []string{"scope-from-scopes-supported"}},
	{asClient, "auth/scope-omitted-when-undefined", "", needsBrowser, []string{"scope-omitted-when-undefined"}},
	{asClient, "auth/scope-step-up", "2025-11-25", needsBrowser, []string{"scope-step-up-escalation", "scope-step-up-initial"}},
	{asClient, "auth/scope-step-up", "2026-07-28", needsBrowser, []string{"scope-step-up-escalation", "scope-step-up-initial", "sep-2350-scope-union-on-reauth"}},
	{asClient, "auth/scope-retry-limit", "", needsBrowser, []string{"scope-retry-limit"}},
	{asClient, "auth/token-endpoint-auth-basic", "", needsBrowser, []string{"resource-parameter-in-authorization"}},
	{asClient, "auth/token-endpoint-auth-post", "", needsBrowser, []string{"resource-parameter-in-authorization"}},
	{asClient, "auth/token-endpoint-auth-none", "", needsBrowser, []string{"resource-parameter-in-authorization", "token-endpoint-auth-method"}},
	{asClient, "auth/2025-03-26-oauth-metadata-backcompat", "", needsBrowser, []string{"authorization-request", "client-registration"}},
	{asClient, "auth/2025-03-26-oauth-endpoint-fallback", "", needsBrowser, nil},
	{asClient, "auth/offline-access-scope", "", needsBrowser, []string{"sep-2207-offline-access-requested"}},
	{asClient, "auth/offline-access-not-supported", "", needsBrowser, []string{"sep-2207-offline-access-not-requested"}},
	{asClient, "auth/authorization-server-migration", "", needsBrowser, []string{"sep-2352-reregister-on-as-change"}},
	{asClient, "auth/iss-supported-missing", "", needsBrowser, []string{"sep-2468-client-reject-missing-iss"}},
	{asClient, "auth/iss-wrong-issuer", "", needsBrowser, []string{"sep-2468-client-compare-iss-supported"}},
	{asClient, "auth/iss-unexpected", "", needsBrowser, []string{"sep-2468-client-compare-iss-unadvertised"}},
	{asClient, "auth/iss-normalized", "", needsBrowser, []string{"sep-2468-client-no-normalization"}},
	{asClient, "auth/enterprise-managed-authorization", "", noGrant, nil},
	{asClient, "auth/dpop", "", noGrant, nil},
	{asClient, "auth/dpop-nonce", "", noGrant, nil},
	{asClient, "auth/wif-jwt-bearer", "", noGrant, nil},
	{asClient, "sep-2640-client-no-prefetch", "", noSkills, nil},
	{asClient, "sep-2640-client-verify-digest", "", noSkills, nil},
	{asClient, "sep-2640-client-verify-size", "", noSkills, nil},
	{asClient, "sep-2640-client-verify-frontmatter", "", noSkills, nil},
}

// advice is what the suite says a side should do and ours does not, with the reason.
var advice = map[string]string{
	"server-stateless:sep-2575-server-sends-tools-list-changed-on-subscription": "the tool that the fixture adds is there already, so the list has not changed",
}
