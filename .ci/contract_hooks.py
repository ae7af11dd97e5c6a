"""What schemathesis must not send: a control character in a header, which a server refuses before any function is asked."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    for name, value in (case.headers or {}).items():
        case.headers[name] = "".join(character for character in value if " " <= character <= "~")
