/* Answers about cells and variables. */
#pragma once

#include "api/schema/shapes.h"

extern const struct shape shape_value_reference, shape_cell, shape_cell_list, shape_variable,
	shape_variable_list, shape_completion, shape_unpacked, shape_session_usage,
	shape_inspection, shape_node, shape_share, shape_connection, shape_network, shape_volume,
	shape_volume_list;
