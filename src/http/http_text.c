/* Names and encodings of HTTP that need no connection. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "http/http.h"
#include "http/http_client.h"
#include "json/json_write.h"

const char *http_method_name(enum http_method m)
{
	static const char *const names[HTTP_METHOD_COUNT] = { "GET", "HEAD", "POST", "PUT", "PATCH",
		"DELETE", "OPTIONS" };
	return m < HTTP_METHOD_COUNT ? names[m] : "-";
}

const char *http_status_text(int status)
{
	static const struct {
		int status;
		const char *text;

	} table[] = {
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 206, "Partial Content" },
		{ 301, "Moved Permanently" },
		{ 302, "Found" },
		{ 303, "See Other" },
		{ 304, "Not Modified" },
		{ 307, "Temporary Redirect" },
		{ 308, "Permanent Redirect" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 410, "Gone" },
		{ 411, "Length Required" },
		{ 412, "Precondition Failed" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 416, "Range Not Satisfiable" },
		{ 417, "Expectation Failed" },
		{ 421, "Misdirected Request" },
		{ 422, "Unprocessable Content" },
		{ 423, "Locked" },
		{ 426, "Upgrade Required" },
		{ 428, "Precondition Required" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
		{ 507, "Insufficient Storage" },
	};
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].status == status)
			return table[i].text;
	return "Unknown";
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int http_percent_decode(const char *in, size_t len, bool plus_is_space, char *out, size_t size)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		char c = in[i];
		if (c == '%') {
			int high = len - i > 2 ? hex_digit(in[i + 1]) : -1,
			    low = high < 0 ? -1 : hex_digit(in[i + 2]);
			if (low < 0)
				return -EINVAL;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		if (!c)
			return -EILSEQ;
		if (n + 1 >= size)
			return -ENOBUFS;
		out[n++] = c;
	}

	if (!text_is_utf8(out, n))
		return -EILSEQ;
	if (!size)
		return -ENOBUFS;
	out[n] = '\0';
	return 0;
}

int http_percent_encode(struct buffer *out, const char *s)
{
	static const char hex[] = "0123456789ABCDEF";
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		char escape[3] = { '%', hex[c >> 4], hex[c & 15] };
		bool plain = isalnum(c) || strchr("-._~", c);
		int r = buffer_append(out, plain ? s : escape, plain ? 1 : 3);
		if (r < 0)
			return r;
	}
	return 0;
}

int http_problem_write(struct buffer *out, int status, const char *code, const char *detail,
	const char *remedy, const char *request_id)
{
	struct json_writer w;
	json_writer_init(&w, out);
	json_open_object(&w);
	json_field_cstr(&w, "type", "about:blank");
	json_field_cstr(&w, "title", http_status_text(status));
	json_field_int(&w, "status", status);
	json_field_cstr(&w, "code", code && *code ? code : "error");
	json_field_cstr(&w, "detail", detail ? detail : "");
	json_field_cstr(&w, "remediation", remedy ? remedy : "");
	if (request_id && *request_id)
		json_field_cstr(&w, "request_id", request_id);
	json_close(&w);
	return json_writer_end(&w);
}
