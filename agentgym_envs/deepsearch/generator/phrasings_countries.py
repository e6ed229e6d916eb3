"""Our sentences about countries and territories. `phrasings` tells the format."""

TEXT = """
## Capital
say
The capital of {e} is {capital}.
{capital} is the capital of {e}.
{E} has its capital in {capital}.
The capital city of {e} is called {capital}.
{E} is governed from its capital, {capital}.
As its capital, {e} has {capital}.
say
It lies at {capital_place}.
Its coordinates are {capital_place}.
On the map it is found at {capital_place}.
GeoNames places it at {capital_place}.
Its position is {capital_place}.
Its latitude and longitude are {capital_place}.
ask capital | {name} capital
What is the capital of {e}?
Which city is the capital of {e}?
What city serves as the capital of {e}?
Name the capital of {e}.
What is the name of the capital city of {e}?
Which capital city belongs to {e}?
Where is the capital of {e} found, that is, in which city?
link capital
the capital of {e}
the capital city of {e}
the city that is the capital of {e}
the city that serves as capital of {e}
the city from which {e} is governed
the city named as capital of {e}
inverse capital | {value} capital
the country whose capital is {value}
the country that has {value} as its capital
the country with {value} as its capital city
the country governed from the capital {value}
the country whose capital city is called {value}
the country with the capital {value}

## Currency
say
The currency of {e} is the {currency}, with the code {currency_code}.
{E} uses the {currency}, abbreviated {currency_code}.
Prices in {e} are given in the {currency} ({currency_code}).
In {e} the legal currency is the {currency}, whose code is {currency_code}.
Money in {e} is counted in the {currency}, code {currency_code}.
People in {e} pay with the {currency}, which has the code {currency_code}.
say
The table of ISO 4217 of January 2026 lists it under the number {currency_number}.
Its number in ISO 4217 is {currency_number} (edition of January 2026).
ISO 4217 gives it the numeric code {currency_number} as of January 2026.
As of January 2026 its numeric code in ISO 4217 is {currency_number}.
In the January 2026 edition of ISO 4217 it bears the number {currency_number}.
The standard ISO 4217, edition of January 2026, numbers it {currency_number}.
ask currency | {name} currency
What is the currency of {e}?
Which currency is used in {e}?
What money do people pay with in {e}?
In which currency are prices given in {e}?
Name the currency of {e}.
What is the official currency of {e} called?
Someone shopping in {e} needs cash of which currency?

## Telephone
say
The international calling code of {e} is {calling_code}.
Calls to {e} begin with {calling_code}.
To phone {e} from abroad, dial {calling_code}.
{E} is reached by telephone under the country code {calling_code}.
The telephone prefix of {e} is {calling_code}.
International telephone numbers in {e} start with {calling_code}.
ask calling_code | {name} telephone
What is the international calling code of {e}?
Which telephone prefix does {e} have?
With which code do international phone numbers of {e} begin?
What country code is dialed to phone {e}?
What is the telephone country code of {e}?
Which calling code reaches {e} from abroad?
To ring someone up in {e} from abroad, which code comes first?
inverse calling_code | telephone {value}
the country whose international calling code is {value}
the country with the telephone prefix {value}
the country reached under the calling code {value}
the country whose phone numbers begin with {value}
the country that has the telephone country code {value}
the country that is dialed with {value}

## Internet domain
say
The internet domain of {e} is {domain}.
Web addresses of {e} end in {domain}.
{E} has the top-level domain {domain}.
On the internet, {e} is found under {domain}.
The country code domain of {e} is {domain}.
Sites registered in {e} can end in {domain}.
ask domain | {name} internet domain
What is the internet domain of {e}?
Which top-level domain does {e} have?
What is the ending of web addresses of {e}?
What is the country code top-level domain of {e}?
Under which internet ending is {e} found?
Which ending do web addresses of {e} have?
A site registered in {e} would carry which top-level domain?
inverse domain | internet domain {value}
the country whose internet domain is {value}
the country with the top-level domain {value}
the country whose web addresses end in {value}
the country found on the internet under {value}
the country that has the country code domain {value}
the country behind the internet ending {value}

## Country codes
say
In ISO 3166 {e} has the codes {alpha2} and {alpha3} and the number {iso_number}.
{E} bears the ISO codes {alpha2} and {alpha3}, and the numeric code {iso_number}.
The ISO 3166 codes of {e} are {alpha2} (two letters), {alpha3} (three letters) and {iso_number}.
ISO 3166 abbreviates {e} to {alpha2} or {alpha3} and numbers it {iso_number}.
The standard for country codes lists {e} as {alpha2}, {alpha3} and {iso_number}.
The two-letter code of {e} is {alpha2}, the three-letter code {alpha3}, the number {iso_number}.
ask alpha3 | {name} country codes
What is the three-letter ISO code of {e}?
Which three letters stand for {e} in ISO 3166?
By which three-letter country code is {e} known?
What is the ISO 3166 alpha-3 code of {e}?
How does ISO 3166 abbreviate {e} to three letters?
Which three-letter code does ISO give to {e}?
In lists with three-letter country codes, what stands for {e}?
ask iso_number | {name} country codes
What is the numeric ISO 3166 code of {e}?
Which number does ISO 3166 give to {e}?
Under which number is {e} listed in ISO 3166?
What is the ISO country number of {e}?
By which three-digit ISO number is {e} known?
What numeric country code does {e} have in ISO 3166?
In ISO 3166, which digits stand for {e}?
inverse alpha3 | {value} country codes
the country with the three-letter ISO code {value}
the country that ISO 3166 abbreviates to {value}
the country whose alpha-3 code is {value}
the country known by the three-letter code {value}
the country listed as {value} in ISO 3166
the country for which the letters {value} stand

## Area
say
The total area of {e} is {area}.
{E} covers {area} in total.
{E} has a total area of {area}.
In all, {e} takes up {area}.
The surface of {e} measures {area}, land and water together.
The Factbook (2025 edition) gives {e} a total area of {area}.
say
Land makes up {land_area} of it.
Of this, {land_area} is land.
The land alone comes to {land_area}.
Without inland waters it is {land_area}.
Its land area is {land_area}.
Dry land accounts for {land_area}.
ask area | {name} area
What is the total area of {e} in square kilometers?
How many square kilometers does {e} cover in total?
How large is {e} in square kilometers, land and water together?
What is the size of {e} in square kilometers?
How big is the total area of {e}, in square kilometers?
In square kilometers, how large is {e}?
What figure in square kilometers is given for the whole surface of {e}?

## Highest point
say
The highest point of {e} is {highest}, {highest_m} above sea level.
{highest}, at {highest_m}, is the highest point of {e}.
{E} reaches its greatest height at {highest}, {highest_m} above the sea.
Nowhere does {e} rise higher than at {highest}, which measures {highest_m}.
At {highest_m}, {highest} is the top of {e}.
The greatest elevation in {e}, {highest_m}, is found at {highest}.
say
The mean elevation is {mean_m}.
On average the land lies {mean_m} above the sea.
The average height of the land is {mean_m}.
The average elevation comes to {mean_m}.
The land has a mean height of {mean_m}.
Taken over all its land, the elevation averages {mean_m}.
ask highest | {name} highest point
What is the highest point of {e}?
What is the name of the highest point in {e}?
Which place in {e} lies highest above the sea?
At which summit or place does {e} reach its greatest height?
Name the highest point of {e}.
Where does {e} rise highest?
If you climbed as high as you can in {e}, where would you stand?
ask highest_m | {name} highest point
How many meters above sea level is the highest point of {e}?
What is the elevation of the highest point of {e}, in meters?
How high in meters does {e} rise at its highest point?
What height in meters does the highest point of {e} have?
At how many meters does {e} reach its greatest height?
In meters, how high is the top of {e}?
What is the greatest elevation found in {e}, in meters?
ask mean_m | {name} highest point
What is the mean elevation of {e} in meters?
How high above the sea does the land of {e} lie on average, in meters?
What is the average elevation of {e}, in meters?
How many meters is the mean height of the land in {e}?
In meters, what is the mean elevation of {e}?
What mean height above the sea, in meters, is given for {e}?
Averaged over all its land, how many meters above the sea is {e}?
inverse highest | {value} highest point
the country whose highest point is {value}
the country that reaches its greatest height at {value}
the country with {value} as its highest point
the country that rises highest at {value}
the country whose greatest elevation is found at {value}
the country topped by {value}

## Lowest point
say
The lowest point of {e} is {lowest}, at {lowest_m}.
{lowest}, at {lowest_m}, is the lowest point of {e}.
{E} has its lowest point at {lowest} ({lowest_m}).
Nowhere does {e} lie lower than at {lowest}, {lowest_m}.
The land of {e} sinks lowest at {lowest}, with {lowest_m}.
At {lowest_m}, {lowest} is the lowest spot of {e}.
ask lowest | {name} lowest point
What is the lowest point of {e}?
Which place in {e} lies lowest?
Where does {e} have its lowest point?
What is the name of the lowest point in {e}?
Name the lowest point of {e}.
At which place is the land of {e} lowest?
Going down as far as the land of {e} goes, where would you end?

## Coastline
say
The coastline of {e} is {coastline} long.
{E} has {coastline} of coast.
The coast of {e} measures {coastline}.
The Factbook (2025 edition) gives {e} a coastline of {coastline}.
Along the sea, {e} stretches over {coastline} of coast.
In all, the shores of {e} run for {coastline}.
ask coastline | {name} coastline
How long is the coastline of {e} in kilometers?
How many kilometers of coast does {e} have?
What is the length of the coastline of {e}, in kilometers?
How many kilometers does the coast of {e} measure?
In kilometers, how long is the coast of {e}?
What length in kilometers is given for the coastline of {e}?
Over how many kilometers do the shores of {e} run?

## Land borders
say
{E} shares land borders with {neighbors}.
By land, {e} borders on {neighbors}.
The land neighbors of {e} are {neighbors}.
On land, {e} touches {neighbors}.
{E} has these neighbors by land: {neighbors}.
Land frontiers join {e} to {neighbors}.
say
{E} has a land border with one country only, {only_neighbor}.
The only country that borders {e} by land is {only_neighbor}.
By land, {e} borders on {only_neighbor} and on no other country.
{E} has one neighbor by land, {only_neighbor}.
The land borders of {e} are all with one country, {only_neighbor}.
No country but {only_neighbor} has a land border with {e}.
say
Its longest land border is the one with {longest_neighbor}.
The border with {longest_neighbor} is the longest.
The longest stretch is shared with {longest_neighbor}.
The longest of them runs along {longest_neighbor}.
The frontier with {longest_neighbor} is the longest.
With {longest_neighbor} it shares the longest one.
say
In all, its land borders measure {border_length} (Factbook, 2025 edition).
The total length comes to {border_length} (Factbook, 2025 edition).
In total there are {border_length} of land borders (Factbook, 2025 edition).
The Factbook (2025 edition) gives a total length of {border_length}.
By the 2025 edition of the Factbook the total is {border_length}.
The sum of its land borders is {border_length} (Factbook, 2025 edition).
ask neighbor | {name} land borders
With which country does {e} share its longest land border?
Which neighbor has the longest land border with {e}?
Along which country does the longest land border of {e} run?
Which country shares the longest land frontier with {e}?
Of all neighbors of {e}, which one shares the longest border with it?
What country lies on the other side of the longest land border of {e}?
Measured by length of the common border, which is the first neighbor of {e}?
ask border_length | {name} land borders
How long are the land borders of {e} in total, in kilometers?
What is the total length of the land borders of {e}, in kilometers?
How many kilometers of land border does {e} have?
In kilometers, how long are all land borders of {e} together?
How many kilometers do the land frontiers of {e} measure together?
What is the sum of the land borders of {e}, in kilometers?
Walking all land borders of {e} would take you how many kilometers?
link neighbor
the country that shares the longest land border with {e}
the neighbor with the longest land border with {e}
the country along which the longest land border of {e} runs
the neighbor that shares the longest frontier with {e}
the country on the other side of the longest land border of {e}
the country with which {e} has its longest land border

## Independence
say
{E} became independent on {independence}, from {independent_from}.
The independence of {e} from {independent_from} dates from {independence}.
On {independence} {e} gained its independence from {independent_from}.
{E} dates its independence to {independence}; before, it was under {independent_from}.
Independence from {independent_from} came to {e} on {independence}.
The date of independence of {e}, from {independent_from}, is {independence}.
ask independence | {name} independence
On what date did {e} become independent?
When did {e} gain its independence, by day, month and year?
What is the date of independence of {e}?
On which day of which year did {e} become independent?
To which date does {e} date its independence?
What day marks the independence of {e}, with the year?
Which date, with day, month and year, ended foreign rule in {e}?
ask independent_from | {name} independence
From which country or power did {e} become independent?
From whom did {e} gain its independence?
Which power ruled {e} until its independence?
What country was {e} under before its independence?
Independence of {e} was gained from whom?
Which country did {e} part from when it became independent?
Whose rule ended when {e} became independent?

## National anthem
say
The national anthem of {e} is "{anthem}".
{E} has the national anthem "{anthem}".
"{anthem}" is the national anthem of {e}.
As its national anthem {e} has "{anthem}".
On national occasions in {e} the anthem "{anthem}" is played.
In {e} the national anthem is called "{anthem}".
say
In English the title is "{anthem_english}".
Its title means "{anthem_english}".
The title is put into English as "{anthem_english}".
In English it would be called "{anthem_english}".
Translated, the title reads "{anthem_english}".
The English form of the title is "{anthem_english}".
ask anthem | {name} national anthem
What is the national anthem of {e} called?
What is the title of the national anthem of {e}?
Which national anthem does {e} have?
Name the national anthem of {e}.
Which song is the national anthem of {e}?
What anthem is played on national occasions in {e}?
At a medal ceremony for {e}, the anthem of which title would be played?
inverse anthem | national anthem {value}
the country whose national anthem is "{value}"
the country with the national anthem "{value}"
the country that has "{value}" as its national anthem
the country whose anthem bears the title "{value}"
the country on whose national occasions "{value}" is played
the country that sings "{value}" as its national anthem

## National symbol
say
The national symbol of {e} is: {symbol}.
{E} lists as its national symbol: {symbol}.
As a symbol of the nation, {e} uses: {symbol}.
In {e} the nation is symbolized by: {symbol}.
National symbol of {e}: {symbol}.
Standing for {e} as national symbol: {symbol}.
say
The national colors are {colors}.
Its colors are {colors}.
Its national colors: {colors}.
The colors of the nation are {colors}.
Colors that stand for the nation are {colors}.
For national colors it has {colors}.
ask symbol | {name} national symbol
What is the national symbol of {e}?
Which national symbol does {e} have?
What stands for {e} as its national symbol?
What animal, plant or thing is the national symbol of {e}?
By which symbol is the nation of {e} represented?
Name the national symbol of {e}.
What does {e} use to symbolize the nation?

## People
say
A citizen of {e} is called {demonym}.
The word for a person from {e} is {demonym}.
Someone from {e} is known as {demonym}.
A native of {e} is called {demonym}.
A person of the nationality of {e} is {demonym}.
In English, a person from {e} is {demonym}.
say
The adjective is {adjective}.
The matching adjective is {adjective}.
As an adjective, {adjective} is used.
Things from there are described as {adjective}.
The adjective that belongs to it is {adjective}.
The nationality is described as {adjective}.
ask demonym | {name} people
What is a citizen of {e} called in English?
What is the English word for a person from {e}?
What is someone from {e} called in English?
What do you call a native of {e} in English?
What is the English name for a person of the nationality of {e}?
By which English noun is a person from {e} known?
In English, a passport holder of {e} is called what?

## Aircraft registration
say
Civil aircraft registered in {e} bear the prefix {aircraft}.
The registration prefix of civil aircraft of {e} is {aircraft}.
Aircraft of {e} carry registrations that begin with {aircraft}.
The country code prefix on civil aircraft of {e} is {aircraft}.
Planes registered in {e} have marks that start with {aircraft}.
{E} marks its civil aircraft with the prefix {aircraft}.
ask aircraft | {name} aircraft registration
What is the registration prefix of civil aircraft of {e}?
Which prefix do civil aircraft registered in {e} bear?
With which country code do aircraft registrations of {e} begin?
What prefix marks a civil aircraft as registered in {e}?
Which aircraft registration prefix does {e} use?
How do the registration marks of planes from {e} begin?
Painted on a plane, what prefix tells that it is registered in {e}?
inverse aircraft | aircraft registration {value}
the country whose civil aircraft bear the registration prefix {value}
the country with the aircraft registration prefix {value}
the country whose planes are marked with the prefix {value}
the country that registers civil aircraft under {value}
the country whose aircraft registrations begin with {value}
the country that uses {value} as its aircraft registration prefix

## Lakes
say
The largest lake of {e} is {lake}, with {lake_area}.
{lake}, with {lake_area}, is the largest lake of {e}.
Among the lakes of {e}, {lake} is the largest at {lake_area}.
No lake of {e} is larger than {lake}, which measures {lake_area}.
At {lake_area}, {lake} is the greatest lake of {e}.
The largest lake that {e} has a share in or owns is {lake} ({lake_area}).
ask lake | {name} lakes
What is the largest lake of {e}?
Which lake of {e} is the largest?
What is the name of the largest lake in {e}?
Name the greatest lake of {e}.
Which lake has the largest area in {e}?
Of the lakes in {e}, which one is the largest?
By area, which lake comes first in {e}?

## Location
say
{E} lies in {part}.
In {part} lies {e}.
{E} is found in {part}.
The part of the world where {e} lies is {part}.
{E} belongs to {part}.
On the map, {e} is in {part}.
say
Its middle is near {middle}.
Its coordinates are about {middle}.
It lies around {middle}.
A point near its middle is {middle}.
The Factbook places it at {middle}.
Its position is given as {middle}.
"""
