/* What OpenEnv's servers say about themselves: metadata and schemas. */
#include "dialects/openenv/openenv.h"

#define SCHEMA_METADATA(what)                                                                             \
	"\"metadata\":{\"additionalProperties\":true,\"description\":\"Additional metadata for the " what \
	"\",\"title\":\"Metadata\",\"type\":\"object\"}"

static const char metadata[] = "{\"name\":\"PythonCodeActEnv\",\"description\":\"PythonCodeActEnv "
			       "environment\",\"readme_content\":null,"
			       "\"version\":\"1.0.0\",\"author\":null,\"documentation_url\":null}";

/* As pydantic writes them, with the three members that only we take. */
static const char schema[] =
	"{\"action\":{\"additionalProperties\":false,"
	"\"description\":\"Represents a single code execution request.\","
	"\"properties\":{" SCHEMA_METADATA(
		"action") ","
			  "\"code\":{\"title\":\"Code\",\"type\":\"string\"},"
			  "\"capture_screenshot\":{\"default\":false,\"description\":\"Also show what is on "
			  "the session's display\","
			  "\"title\":\"Capture Screenshot\",\"type\":\"boolean\"},"
			  "\"render_timeout\":{\"default\":0.5,\"description\":\"Seconds that windows may "
			  "take to be painted after the code has ended\",\"maximum\":60,\"minimum\":0,"
			  "\"title\":\"Render Timeout\",\"type\":\"number\"},"
			  "\"timeout_s\":{\"anyOf\":[{\"exclusiveMinimum\":0,\"type\":\"number\"},{\"type\":"
			  "\"null\"}],\"default\":null,"
			  "\"description\":\"Wall time of this step\",\"title\":\"Timeout S\"}},"
			  "\"required\":[\"code\"],\"title\":\"CodeAction\",\"type\":\"object\"},"
			  "\"observation\":{\"additionalProperties\":false,"
			  "\"description\":\"Result of executing code in the environment.\","
			  "\"properties\":{\"done\":{\"default\":false,\"description\":\"Whether the episode "
			  "has terminated\","
			  "\"title\":\"Done\",\"type\":\"boolean\"},"
			  "\"reward\":{\"anyOf\":[{\"type\":\"boolean\"},{\"type\":\"integer\"},{\"type\":"
			  "\"number\"},{\"type\":\"null\"}],"
			  "\"default\":null,\"description\":\"Reward signal from the last "
			  "action\",\"title\":\"Reward\"}," SCHEMA_METADATA(
				  "observation") ","
						 "\"stdout\":{\"default\":\"\",\"title\":\"Stdout\",\"type\":"
						 "\"string\"},"
						 "\"stderr\":{\"default\":\"\",\"title\":\"Stderr\",\"type\":"
						 "\"string\"},"
						 "\"exit_code\":{\"default\":0,\"title\":\"Exit "
						 "Code\",\"type\":\"integer\"},"
						 "\"screenshot\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":"
						 "\"null\"}],\"default\":null,"
						 "\"description\":\"A PNG in base64, when it was asked "
						 "for\",\"title\":\"Screenshot\"}},"
						 "\"title\":\"CodeObservation\",\"type\":\"object\"},"
						 "\"state\":{\"additionalProperties\":true,"
						 "\"description\":\"Base class for environment state.\\n\\n"
						 "Represents internal environment state, separate from "
						 "observations.\","
						 "\"properties\":{\"episode_id\":{\"anyOf\":[{\"type\":"
						 "\"string\"},{\"type\":\"null\"}],\"default\":null,"
						 "\"description\":\"Unique identifier for the current "
						 "episode\",\"title\":\"Episode Id\"},"
						 "\"step_count\":{\"default\":0,\"description\":\"Number of "
						 "steps taken in the current episode\",\"minimum\":0,"
						 "\"title\":\"Step "
						 "Count\",\"type\":\"integer\"}},\"title\":\"State\","
						 "\"type\":\"object\"}}";

void handle_openenv_metadata(struct call *c)
{
	call_respond_static(c, 200, "application/json", metadata, sizeof(metadata) - 1);
}

void handle_openenv_schema(struct call *c)
{
	call_respond_static(c, 200, "application/json", schema, sizeof(schema) - 1);
}

void handle_openenv_environments(struct call *c)
{
	static const char names[] = "[\"PythonCodeActEnv\"]";
	call_respond_static(c, 200, "application/json", names, sizeof(names) - 1);
}
