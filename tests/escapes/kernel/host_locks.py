"""A lock on a file that a program of the host's locks too: whoever may read it can hold that program up. fc-cache locks what it made."""

place = '/var/cache/fontconfig'
if os.path.isdir(place) and os.stat(place).st_dev == os.stat('/usr').st_dev:
    got(place)
