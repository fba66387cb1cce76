/* Addresses of volumes, which outlive sessions. */
#include "api/call.h"
#include "api/routes.h"
#include "api/schema/requests_console.h"
#include "api/schema/shapes_console.h"

#define JSON "application/json"

const struct route volume_routes[] = {
	{
		.method = HTTP_METHOD_POST,
		.pattern = "/v1/volumes",
		.handle = handle_volume_create,
		.operation = "createVolume",
		.summary = "Create a volume",
		.description =
			"A directory that outlives sessions and restarts of the server. One session can write to it "
			"(`volumes` of POST /v1/sessions), or several sessions can read it.",
		.request = &volume_fields,
		.status = 201,
		.content_type = JSON,
		.shape = &shape_volume,
		.example = "curl -s $URL/v1/volumes -H 'Content-Type: application/json' -d "
			   "'{\"name\":\"example\"}'",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/volumes",
		.handle = handle_volume_list,
		.operation = "listVolumes",
		.summary = "List the volumes",
		.description = "The volumes of this token, with their sizes and who uses them.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_volume_list,
		.example = "curl -s $URL/v1/volumes",
	},
	{
		.method = HTTP_METHOD_GET,
		.pattern = "/v1/volumes/{id}",
		.handle = handle_volume_get,
		.operation = "getVolume",
		.summary = "Get one volume",
		.description = "By its name.",
		.status = 200,
		.content_type = JSON,
		.shape = &shape_volume,
	},
	{
		.method = HTTP_METHOD_DELETE,
		.pattern = "/v1/volumes/{id}",
		.handle = handle_volume_delete,
		.operation = "deleteVolume",
		.summary = "Delete a volume and its files",
		.description = "409 `volume_in_use` while a session has it.",
		.status = 204,
	},
	{ .pattern = NULL },
};
