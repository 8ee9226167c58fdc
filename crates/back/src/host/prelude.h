#: floordiv
$Q $T floordiv_host($T a, $T c)
{
    return a / c - (a % c < 0);
}

#: mod
$Q $T mod_host($T a, $T c)
{
    const $T r = a % c;
    return r < 0 ? r + c : r;
}
