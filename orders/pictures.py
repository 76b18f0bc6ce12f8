"""Where a product's picture is."""

from urllib.parse import urljoin

from django.templatetags.static import static


def picture_url(picture: str, *, base_url: str) -> str | None:
    """Return the picture's whole address, None where there is none.

    `picture` is what the product has: an address, or the name of a static file, which is served
    below `base_url`.
    """
    if not picture:
        return None
    if picture.startswith("https://"):
        return picture
    return urljoin(base_url, static(picture))
