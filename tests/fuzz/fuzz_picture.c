/* Pictures that sessions make: reading them, and their sizes. */
#include <stdint.h>
#include <stdlib.h>

#include "dialects/common/picture_job.h"
#include "display/client/screen.h"
#include "display/image/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image i = { 0 };
	uint32_t width = 0, height = 0;
	/* a picture of gigapixels takes long by design: the process has a limit of time */
	if (picture_size(data, size, &width, &height) && (uint64_t)width * height > 1 << 20)
		return 0;
	if (picture_read(data, size, 64, &i) == 0)
		free(i.pixels);
	return 0;
}
